/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The shapes of an operator's tensors, as they are when it is entered. A TensorImpl has
 * its number of dimensions, their sizes and strides, where in its storage it begins,
 * how many elements it has, their type and its device side by side: one read. They go
 * to user space as they are, which knows what they mean, and whether they are that
 * (tracer/tensor). Every pointer here is the job's: whatever it leads to is copied, by
 * a fixed number of bytes, and never followed further than written here.
 */
#ifndef EBPFPROF_TENSORS_H
#define EBPFPROF_TENSORS_H

#include "maps.h"
#include "regs.h"
#include "verified.h"

#define TOGETHER 6	/* so many arguments are tried to be read together */
#define SLOT_BYTES (8 * SLOT_WORDS)
#define ELEMENTS_WORD 12	/* of a slot: elements, and behind it the type */

static __always_inline long read_user(void *to, __u32 bytes, __u64 address)
{
	return bpf_probe_read_user(to, bytes, (void *)address);
}

struct list_walk {
	struct tensor_slot *slot;
	__u64 first;	/* where the pointers are */
	__u64 elements;	/* where a TensorImpl has its number of them */
	__u64 count;
};

/* One tensor of a list: only how many elements, and of which type. */
static long add_tensor(__u32 i, void *context)
{
	struct list_walk *l = context;
	__u64 impl, words[2];

	if (i >= l->count)
		return 1;
	if (read_user(&impl, sizeof(impl), l->first + 8 * (__u64)i) || read_user(words, sizeof(words), impl + l->elements))
		return 1;
	if (i == 0)
		l->slot->word[3] = words[1];
	if ((l->slot->word[3] & 0xffff) == (words[1] & 0xffff)) {
		l->slot->word[1] += words[0];
		l->slot->word[4]++;
	}
	l->slot->word[2]++;
	return 0;
}

static __always_inline __u8 read_list(struct tensor_slot *slot, __u64 first, __u64 count, __u64 elements)
{
	struct list_walk l = { .slot = slot, .first = first, .elements = elements, .count = count };

	slot->word[0] = count;
	slot->word[1] = 0;
	slot->word[2] = 0;
	slot->word[3] = 0;
	slot->word[4] = 0;
	if (HAVE_BPF_LOOP) {
		bpf_loop(LIST_TENSORS, add_tensor, &l, 0);
	} else {
		for (int i = 0; i < LIST_TENSORS / 8; i++)
			if (add_tensor(i, &l))
				break;
	}
	return TENSOR_READ;
}

/* The capture of one of the arguments whose shapes are read: behind the others. */
static __always_inline const struct capture *tensor_capture(const struct probe_spec *spec, __u32 i)
{
	__u64 at = (__u64)i + spec->captures;

	OPAQUE(at);
	if (at >= MAX_ARGS)
		return 0;
	return &spec->capture[at];
}

/* The tensor behind a pointer to a TensorImpl. */
static __always_inline __u8 read_tensor(struct tensor_slot *slot, const struct probe_spec *spec, __u64 impl, __u32 check)
{
	__u64 storage;

	if (!impl)
		return TENSOR_ABSENT;
	if (read_user(slot->word, SLOT_BYTES, impl + spec->tensor_sizes))
		return TENSOR_FAULT;
	if (!check)
		return TENSOR_READ;
	if (read_user(&storage, sizeof(storage), impl + spec->tensor_storage) || !storage ||
	    read_user(&slot->storage_bytes, sizeof(slot->storage_bytes), storage + spec->storage_bytes))
		return TENSOR_READ;
	return TENSOR_CHECKED;
}

/* Reads memory that an argument points to: out of what was read of all of them, if it is there. */
static __always_inline long read_near(struct thread_state *t, __u64 *to, __u32 words, __u64 address)
{
	__u64 at = address - t->near_from;

	if (at + 8 * words > t->near_bytes || at & 7)
		return read_user(to, 8 * words, address);
	at >>= 3;
	to[0] = t->near[at & (NEAR_WORDS - 1)];
	if (words > 1)
		to[1] = t->near[(at + 1) & (NEAR_WORDS - 1)];
	return 0;
}

/*
 * A read takes as long for half a kilobyte as for a word: so one for the arguments,
 * where they point close to each other, and not one for each.
 */
VERIFIED_ONCE int read_together(struct thread_state *t, const struct probe_spec *spec)
{
	__u64 low = ~0ULL, high = 0, bytes;
	__u32 n = 0;

	if (!t || !spec)
		return 0;
	t->near_bytes = 0;
	if (spec->captures)
		return 0;	/* no operator: its arguments are vectors, and calls of it are few */
	for (__u32 i = 0; i < TOGETHER; i++) {
		const struct capture *c = &spec->capture[i];
		__u64 v = t->words[c->index & (TENSOR_WORDS - 1)];

		if (i >= spec->tensors)
			break;
		if ((c->source != TENSOR_ONE && c->source != TENSOR_OPTIONAL) || !v)
			continue;
		n++;
		low = v < low ? v : low;
		high = v > high ? v : high;
	}
	bytes = high - low + 16;
	if (n < 2 || high - low > 8 * NEAR_WORDS - 16 || bytes > 8 * NEAR_WORDS)
		return 0;
	if (read_user(t->near, bytes, low))
		return 0;
	t->near_from = low;
	t->near_bytes = bytes;
	return 0;
}

/* Reads one argument into its slot. */
VERIFIED_ONCE int read_argument(struct thread_state *t, const struct probe_spec *spec, __u32 i, __u32 check)
{
	const struct capture *c;
	struct tensor_slot *slot;
	struct tensors_record *r;
	__u64 v, next, pair[3] = {};
	__u8 outcome = TENSOR_FAULT;

	if (!t || !spec || i >= MAX_ARGS)
		return 0;
	r = &t->tensors;
	c = tensor_capture(spec, i);
	if (!c)
		return 0;
	slot = &r->slot[i];
	v = t->words[c->index & (TENSOR_WORDS - 1)];
	next = t->words[(c->index + 1) & (TENSOR_WORDS - 1)];
	switch (c->source) {
	case TENSOR_ONE:
		if (!v)
			outcome = TENSOR_ABSENT;
		else if (!read_near(t, &v, 1, v))
			outcome = read_tensor(slot, spec, v, check);
		break;
	case TENSOR_OPTIONAL:
		if (!v)
			outcome = TENSOR_ABSENT;
		else if (!read_near(t, pair, 2, v)) {
			__u64 flag = c->offset[0] ? pair[0] : pair[1];

			outcome = TENSOR_ABSENT;
			if (flag & 0xff)
				outcome = read_tensor(slot, spec, c->offset[0] ? pair[1] : pair[0], check);
		}
		break;
	case TENSOR_LIST:
		outcome = read_list(slot, v, next, spec->tensor_sizes + 8 * ELEMENTS_WORD);
		break;
	case TENSOR_LIST_BEHIND:
		if (!read_user(pair, 24, v))
			outcome = (pair[2] & 0xff) ? TENSOR_BOXED :
				  read_list(slot, pair[0], pair[1], spec->tensor_sizes + 8 * ELEMENTS_WORD);
		break;
	case TENSOR_VECTOR:
		if (read_user(pair, 16, v))
			break;
		if (pair[1] - pair[0] == sizeof(v)) {
			if (!read_user(&v, sizeof(v), pair[0]))
				outcome = read_tensor(slot, spec, v, check);
		} else if (read_list(slot, pair[0], (pair[1] - pair[0]) / sizeof(v), spec->tensor_sizes + 8 * ELEMENTS_WORD)) {
			outcome = TENSOR_LISTED;
		}
		break;
	case TENSOR_NUMBERS:
		slot->word[0] = next;
		outcome = TENSOR_READ;
		if (next && read_user(slot->word + 1, next < SLOT_WORDS - 1 ? 8 * (next & 15) : 8 * (SLOT_WORDS - 1), v))
			outcome = TENSOR_FAULT;
		break;
	case TENSOR_NUMBER_BEHIND:
		if (!read_user(&v, sizeof(v), v)) {
			slot->word[0] = v;
			outcome = TENSOR_READ;
		}
		break;
	case TENSOR_NUMBER:
		slot->word[0] = v;
		outcome = TENSOR_READ;
		break;
	}
	r->outcome[i] = outcome;
	r->more[i] = 0;
	if (slot->word[0] > INLINE_DIMS)
		r->many = 1;	/* or it is no tensor: read_more looks */
	return 0;
}

/* The sizes and strides that lie elsewhere, since they are more than fit. */
VERIFIED_ONCE int read_more(struct thread_state *t, const struct probe_spec *spec, __u32 i)
{
	const struct capture *c;
	struct tensors_record *r;
	__u64 dims, bytes;
	__u32 at;
	__u8 source;

	if (!t || !spec || i >= MAX_ARGS)
		return 0;
	r = &t->tensors;
	c = tensor_capture(spec, i);
	if (!c)
		return 0;
	source = c->source;
	dims = r->slot[i].word[0];
	at = r->slots;
	if ((source != TENSOR_ONE && source != TENSOR_OPTIONAL && source != TENSOR_VECTOR) || r->outcome[i] > TENSOR_CHECKED ||
	    dims <= INLINE_DIMS || dims > SLOT_WORDS || at >= MAX_ARGS)
		return 0;
	/* Of more than fit twice, the sizes alone. */
	bytes = dims > SLOT_WORDS / 2 ? dims * 8 : dims * 16;
	if (bytes > SLOT_BYTES || read_user(r->slot[at].word, bytes, r->slot[i].word[1]))
		return 0;
	r->more[i] = at + 1;
	r->slots = at + 1;
	return 0;
}

struct arguments_walk {
	struct thread_state *thread;
	const struct probe_spec *spec;
	__u32 check;
};

static long next_argument(__u32 i, void *context)
{
	struct arguments_walk *w = context;

	if (i >= w->spec->tensors)
		return 1;
	read_argument(w->thread, w->spec, i, w->check);
	return 0;
}

static long next_more(__u32 i, void *context)
{
	struct arguments_walk *w = context;

	if (i >= w->spec->tensors)
		return 1;
	read_more(w->thread, w->spec, i);
	return 0;
}

/* Reads the arguments of a call that begins, and sends them. */
VERIFIED_ONCE int send_tensors(struct thread_state *t, const struct probe_spec *spec, __u32 check)
{
	struct arguments_walk w = { .thread = t, .spec = spec, .check = check };
	struct tensors_record *r;
	__u64 bytes;

	if (!t || !spec)
		return 0;
	r = &t->tensors;
	r->slots = spec->tensors;
	r->many = 0;
	read_together(t, spec);
	if (HAVE_BPF_LOOP) {
		bpf_loop(MAX_ARGS, next_argument, &w, 0);
		if (r->many)
			bpf_loop(MAX_ARGS, next_more, &w, 0);
	} else {
		for (__u32 i = 0; i < MAX_ARGS; i++)
			if (next_argument(i, &w))
				break;
		for (__u32 i = 0; i < MAX_ARGS; i++)
			if (!r->many || next_more(i, &w))
				break;
	}
	bytes = r->slots;
	if (bytes > MAX_ARGS)
		return 0;
	bytes = __builtin_offsetof(struct tensors_record, slot) + bytes * sizeof(struct tensor_slot);
	if (bytes > sizeof(*r) || bpf_ringbuf_output(&calls, r, bytes, BPF_RB_NO_WAKEUP))
		lose(LOSS_SHAPES_LOST);
	return 0;
}

/* At the entry of an operator whose spec names tensors, before its span has its number. */
static __noinline int take_tensors(struct pt_regs *ctx, const struct probe_spec *spec, struct thread_state *t,
				   struct frame *f, __u64 calls_before)
{
	reg_args(ctx, t->words);
	if (spec->flags & SPEC_STACK_ARGS)
		bpf_probe_read_user(t->words + REGISTER_ARGS, 8 * (TENSOR_WORDS - REGISTER_ARGS), (void *)(f->sp + STACK_ARGS));
	t->tensors.kind = RECORD_TENSORS;
	t->tensors.spec = f->spec;
	t->tensors.span_id = t->next_span + 1;
	return send_tensors(t, spec, (calls_before & ((1ULL << (spec->tensor_checks & 31)) - 1)) == 0);
}

#endif
