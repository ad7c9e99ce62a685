/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a probe reads of its call: registers, stack slots, memory behind them. */
#ifndef EBPFPROF_CAPTURE_H
#define EBPFPROF_CAPTURE_H

#include "maps.h"
#include "regs.h"
#include "verified.h"

/* For how long the thread has waited for a processor so far, ns; false where the kernel does not count it. */
static __always_inline bool run_delay(__u64 *ns)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	if (!bpf_core_field_exists(task->sched_info.run_delay))
		return false;
	*ns = BPF_CORE_READ(task, sched_info.run_delay);
	return true;
}

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

/* What lies on the stack could not be read. */
static __always_inline void miss_stack_values(struct frame *f, __u32 n)
{
	for (__u32 i = REGISTERS_IN_ORDER; i < MAX_ARGS; i++) {
		if (i >= n)
			break;
		f->arg[i] = 0;
		f->faults |= 1U << i;
		lose(LOSS_READ_FAULT);
	}
}

/*
 * Fills the frame's values where they are the arguments in their order, which
 * most calls' are: none has to be looked up. memory is what was read of the stack
 * already, if it was.
 */
static __always_inline void capture_in_order(struct pt_regs *ctx, const struct probe_spec *spec,
					     struct frame *f, const __u64 *memory)
{
	__u64 words[STACK_VALUES_BYTES / 8], caller, last = (__u64)spec->captures - 1;	/* none: out of range */
	bool stack = spec->flags & SPEC_STACK_ARGS, failed = false, by_caller;

	if (stack) {
		/* Into the BPF stack first: the kernel copies a few words there in four
		 * fifths of the time in which it copies them to a map. */
		if (!memory)
			failed = bpf_probe_read_user(words, sizeof(words), (void *)f->sp) != 0;
		for (int i = STACK_VALUES / 8; i < STACK_VALUES_BYTES / 8; i++)
			f->arg[STACK_VALUES_FIRST - STACK_VALUES / 8 + i] = memory ? memory[i] : words[i];
	}
	args_in_order(ctx, f->arg, &caller);
	/* What is compared is what is used, of 64 bits: compilers compare captures instead,
	 * and what 6.1 knows of 32 bits it forgets on their way through the stack. */
	OPAQUE(last);
	by_caller = stack && last < MAX_ARGS && spec->capture[last].index == CALLER_WORD;
	if (failed)
		miss_stack_values(f, spec->captures - by_caller);
	OPAQUE(last);
	if (!by_caller || last >= MAX_ARGS)
		return;
	f->arg[last] = caller;
	if (failed && CALLER_ON_STACK) {
		f->faults |= 1U << last;
		lose(LOSS_READ_FAULT);
	}
}

/* What captures choose from. */
struct capture_words {
	__u64 word[REGISTER_ARGS + STACK_WORDS];
};

/* Follows the value of one capture, if there is anything to follow. What could not be read is noted. */
VERIFIED_ONCE int capture_follow(const struct probe_spec *spec, struct frame *f, __u32 i, __u32 there)
{
	const struct capture *c;
	bool ok = there;
	__u64 v;

	if (!spec || !f || i >= MAX_ARGS)
		return 0;
	c = &spec->capture[i];
	if (c->flags & CAPTURE_DELAY) {
		if (!run_delay(&f->arg[i]))
			f->faults |= 1U << i;
		return 0;
	}
	v = f->arg[i];
	if (c->derefs && ok && !v) {
		/* A null pointer is an argument that was not given, not a failure:
		 * nor is it one when the call returns. */
		f->faults |= 1U << i;
		return 0;
	}
	if (!(c->flags & CAPTURE_AT_RETURN)) {
		if (ok && c->derefs > 1)
			ok = read_word(&v, v + c->offset[0]);
		if (c->derefs > 1 && ok && !v) {
			f->faults |= 1U << i;
			return 0;
		}
		if (ok && c->derefs > 0)
			ok = read_part(&v, v + c->offset[(c->derefs - 1) & 1], c->flags);
	}
	if (!ok) {
		f->faults |= 1U << i;
		lose(LOSS_READ_FAULT);
	}
	f->arg[i] = v;
	return 0;
}

VERIFIED_ONCE int capture_values(const struct capture_words *words, const struct probe_spec *spec,
				 struct frame *f, __u32 stack)
{
	if (!words || !spec || !f)
		return 0;
	for (__u32 i = 0; i < MAX_ARGS; i++) {
		const struct capture *c = &spec->capture[i];
		__u32 there = stack || c->source != SOURCE_STACK;

		if (i >= spec->captures)
			break;
		barrier_var(there);	/* one state for the verifier, not two */
		f->arg[i] = words->word[c->index & (REGISTER_ARGS + STACK_WORDS - 1)];
		/* Nothing to follow: the values are as they come. */
		if ((spec->flags & SPEC_FOLLOWS) || !stack)
			capture_follow(spec, f, i, there);
	}
	return 0;
}

/* The words of pt_regs. */
#define CONTEXT_WORDS (sizeof(struct pt_regs) / 8)

/* Where an instant is, values may be in any register. */
static __noinline int capture_context(struct pt_regs *ctx, const struct probe_spec *spec, struct frame *f)
{
	for (__u32 i = 0; i < MAX_ARGS; i++) {
		const struct capture *c = &spec->capture[i];
		__u32 index = c->index, there;

		if (i >= spec->captures)
			break;
		if (index >= CONTEXT_WORDS)
			index = 0;
		there = bpf_probe_read_kernel(&f->arg[i], sizeof(f->arg[i]), (void *)ctx + 8 * index) == 0;
		barrier_var(there);
		capture_follow(spec, f, i, there);
	}
	return 0;
}

/* Fills the frame's values with what the spec asks for, one by one. */
static __noinline int capture_each(struct pt_regs *ctx, const struct probe_spec *spec,
				   struct frame *f)
{
	struct capture_words words = {};
	__u32 stack = 1;

	if (spec->action == ACTION_INSTANT)
		return capture_context(ctx, spec, f);
	reg_args(ctx, words.word);
	/* All at once: a read costs as much for a word as for eight. */
	if (spec->flags & SPEC_STACK_ARGS) {
		stack = bpf_probe_read_user(words.word + STACK_WORDS_FIRST,
					    8 * (REGISTER_ARGS + STACK_WORDS - STACK_WORDS_FIRST),
					    (void *)(f->sp + STACK_ARGS -
						     8 * (REGISTER_ARGS - STACK_WORDS_FIRST))) == 0;
		reg_caller(ctx, words.word);
	}
	barrier_var(stack);
	return capture_values(&words, spec, f, stack);
}

/* Reads what the call left behind its pointers. What could not be read is noted. */
VERIFIED_ONCE int capture_out_args(const struct probe_spec *spec, struct frame *f)
{
	if (!spec || !f)
		return 0;
	for (__u32 i = 0; i < MAX_ARGS; i++) {
		const struct capture *c = &spec->capture[i];
		__u64 *arg = &f->arg[i];

		if (i >= spec->captures)
			break;
		if (c->flags & CAPTURE_DELAY) {
			__u64 now = 0;

			run_delay(&now);
			*arg = now - *arg;
			continue;
		}
		if (!(c->flags & CAPTURE_AT_RETURN) || !*arg)
			continue;
		if (!read_part(arg, *arg + c->offset[0], c->flags)) {
			f->faults |= 1U << i;
			lose(LOSS_READ_FAULT);
			continue;
		}
		/* What is there may be no pointer, but another member of a union: that
		 * is for the reader to say, and no loss. */
		if (c->derefs > 1 && *arg && !read_word(arg, *arg + c->offset[1]))
			f->faults |= 1U << i;
	}
	return 0;
}

#endif
