/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a probe reads of its call: registers, stack slots, memory behind them. */
#ifndef EBPFPROF_CAPTURE_H
#define EBPFPROF_CAPTURE_H

#include "maps.h"
#include "regs.h"

/* Reads eight bytes, or four: CAPTURE_NARROW is their difference. */
static __always_inline bool read_part(__u64 *value, __u64 address, __u8 flags)
{
	*value = 0;
	if (bpf_probe_read_user(value, sizeof(*value) - (flags & CAPTURE_NARROW), (void *)address) == 0)
		return true;
	*value = 0;
	return false;
}

static __always_inline bool read_word(__u64 *value, __u64 address)
{
	return read_part(value, address, 0);
}

/* What capture_in_order needs of the stack. */
#define STACK_VALUES_BYTES (STACK_VALUES + 8 * (MAX_ARGS - STACK_VALUES_FIRST))

/*
 * Fills the frame's values where they are the arguments in their order, which
 * most calls' are: none has to be looked up. memory is what was read of the stack
 * already, if it was. Reports whether the stack could be read, if they need it.
 */
static __always_inline bool capture_in_order(struct pt_regs *ctx, const struct probe_spec *spec,
					     struct frame *f, const __u64 *memory)
{
	__u32 last = spec->captures - 1;
	bool stack = spec->flags & SPEC_STACK_ARGS;
	__u64 words[STACK_VALUES_BYTES / 8], caller;

	if (stack) {
		/* Into the BPF stack first: the kernel copies a few words there in four
		 * fifths of the time in which it copies them to a map. */
		if (!memory && bpf_probe_read_user(words, sizeof(words), (void *)f->sp))
			return false;
		for (int i = STACK_VALUES / 8; i < STACK_VALUES_BYTES / 8; i++)
			f->arg[STACK_VALUES_FIRST - STACK_VALUES / 8 + i] = memory ? memory[i] : words[i];
	}
	args_in_order(ctx, f->arg, &caller);
	if (stack && last < MAX_ARGS && spec->capture[last].index == CALLER_WORD)
		f->arg[last] = caller;
	return true;
}

/*
 * Fills the frame's values with what the spec asks for, one by one. What could
 * not be read is noted in memory: a branch on a sum of faults would have the
 * verifier follow each of the ways to come by it.
 */
static __noinline int capture_each(struct pt_regs *ctx, const struct probe_spec *spec,
				   struct frame *f)
{
	__u64 words[REGISTER_ARGS + STACK_WORDS];
	volatile __u32 *faults = &f->faults;
	__u32 n = spec->captures;
	bool stack = true;

	__builtin_memset(words, 0, sizeof(words));
	reg_args(ctx, words);
	/* All at once: a read costs as much for a word as for eight. */
	if (spec->flags & SPEC_STACK_ARGS) {
		stack = bpf_probe_read_user(words + STACK_WORDS_FIRST,
					    8 * (REGISTER_ARGS + STACK_WORDS - STACK_WORDS_FIRST),
					    (void *)(f->sp + STACK_ARGS -
						     8 * (REGISTER_ARGS - STACK_WORDS_FIRST))) == 0;
		reg_caller(ctx, words);
	}
	/* Nothing to follow: the values are as they come. */
	if (!(spec->flags & SPEC_FOLLOWS) && stack) {
		for (int i = 0; i < MAX_ARGS; i++) {
			if (i >= n)
				break;
			f->arg[i] = words[spec->capture[i].index & (REGISTER_ARGS + STACK_WORDS - 1)];
		}
		return 0;
	}
	for (int i = 0; i < MAX_ARGS; i++) {
		const struct capture *c = &spec->capture[i];
		__u64 v = 0;
		bool ok;

		if (i >= n)
			break;
		v = words[c->index & (REGISTER_ARGS + STACK_WORDS - 1)];
		ok = c->source != SOURCE_STACK || stack;
		if (c->derefs && ok && !v) {
			/* A null pointer is an argument that was not given, not a failure:
			 * nor is it one when the call returns. */
			*faults |= 1U << i;
			f->arg[i] = 0;
			continue;
		}
		if (!(c->flags & CAPTURE_AT_RETURN)) {
			if (ok && c->derefs > 1)
				ok = read_word(&v, v + c->offset[0]);
			if (c->derefs > 1 && ok && !v) {
				*faults |= 1U << i;
				continue;
			}
			if (ok && c->derefs > 0)
				ok = read_part(&v, v + c->offset[(c->derefs - 1) & 1], c->flags);
		}
		if (!ok) {
			*faults |= 1U << i;
			lose(LOSS_READ_FAULT);
		}
		f->arg[i] = v;
	}
	return 0;
}

static __always_inline void capture_args(struct pt_regs *ctx, const struct probe_spec *spec,
					 struct frame *f, const __u64 *memory)
{
	if (!(spec->flags & SPEC_IN_ORDER) || !capture_in_order(ctx, spec, f, memory))
		capture_each(ctx, spec, f);
}

static __always_inline __u32 capture_out_args(const struct probe_spec *spec, __u64 *arg)
{
	__u32 faults = 0;

	for (int i = 0; i < MAX_ARGS; i++) {
		const struct capture *c = &spec->capture[i];

		if (i >= spec->captures)
			break;
		if (!(c->flags & CAPTURE_AT_RETURN) || !arg[i])
			continue;
		if (!read_part(&arg[i], arg[i] + c->offset[0], c->flags)) {
			faults |= 1U << i;
			lose(LOSS_READ_FAULT);
			continue;
		}
		/* What is there may be no pointer, but another member of a union: that
		 * is for the reader to say, and no loss. */
		if (c->derefs > 1 && arg[i] && !read_word(&arg[i], arg[i] + c->offset[1]))
			faults |= 1U << i;
	}
	return faults;
}

#endif
