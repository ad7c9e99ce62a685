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

#define SLOT_BYTES (8 * SLOT_WORDS)
#define OFFSET_WORD (1 + 2 * INLINE_DIMS)
#define ELEMENTS_WORD (OFFSET_WORD + 1)	/* of a tensor: elements, and behind it the type */

static __always_inline long read_user(void *to, __u32 bytes, __u64 address)
{
	return bpf_probe_read_user(to, bytes, (void *)address);
}

struct list_walk {
	__u64 *word;
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
		l->word[3] = words[1];
	if ((l->word[3] & 0xffff) == (words[1] & 0xffff)) {
		l->word[1] += words[0];
		l->word[4]++;
	}
	l->word[2]++;
	return 0;
}

static __always_inline void read_list(__u64 *word, __u64 first, __u64 count, __u64 elements)
{
	struct list_walk l = { .word = word, .first = first, .elements = elements, .count = count };

	word[0] = count;
	word[1] = 0;
	word[2] = 0;
	word[3] = 0;
	word[4] = 0;
	if (HAVE_BPF_LOOP) {
		bpf_loop(LIST_TENSORS, add_tensor, &l, 0);
	} else {
		for (int i = 0; i < LIST_TENSORS / 8; i++)
			if (add_tensor(i, &l))
				break;
	}
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

/*
 * A hash of what was read, and of the epoch: whoever reads may forget what earlier ones
 * were told. Two that differ in one word never have the same, and others as good as never
 * (a job that makes them so is wrong about its own shapes alone).
 */
static __always_inline __u64 hashed(__u64 hash, __u64 word)
{
	return (hash ^ word) * 0x9e3779b97f4a7c15ULL;	/* 2^64 / the golden ratio: no small multiple of it is small */
}

/* Where an argument's words go, and how many of them it has. */
struct room {
	struct tensors_record *record;
	__u64 hash;
	__u32 hashed;	/* so many of the words are in the hash */
	__u32 at;	/* checked: ARGUMENT_WORDS from here on are in the record */
	__u32 words;
};

/* The sizes and strides that lie elsewhere, since they are more than fit: of more than fit twice, the sizes alone. */
static __always_inline long read_elsewhere(struct room *to, __u64 dims, __u64 address)
{
	__u64 at = to->at + to->words, bytes = dims > SLOT_WORDS / 2 ? dims * 8 : dims * 16;

	if (dims > SLOT_WORDS || bytes > SLOT_BYTES || at > TENSORS_WORDS - SLOT_WORDS ||
	    read_user(&to->record->word[at], bytes, address))
		return -1;
	to->words += bytes / 8;
	return 0;
}

/*
 * The tensor behind a pointer to a TensorImpl; there has room for a slot. Each pointer is
 * read by itself: to read those of all arguments at once, from the caller's stack into
 * memory that is no stack, was measured, and is no faster.
 */
static __always_inline __u8 read_tensor(struct room *to, const struct probe_spec *spec, __u64 impl, __u64 *there,
					__u32 check)
{
	__u64 *word = &to->record->word[to->at];
	__u8 outcome = TENSOR_READ;

	if (!impl)
		return TENSOR_ABSENT;
	if (read_user(there, SLOT_BYTES, impl + spec->tensor_sizes))
		return TENSOR_FAULT;
	word[0] = there[0];
	if (there[0] <= NARROW_DIMS) {
		for (int i = 0; i < NARROW_DIMS; i++) {
			word[1 + i] = there[1 + i];
			word[1 + NARROW_DIMS + i] = there[1 + INLINE_DIMS + i];
		}
		for (int i = 0; i < 3; i++)
			word[1 + 2 * NARROW_DIMS + i] = there[OFFSET_WORD + i];
		to->words = NARROW_WORDS;
		for (int i = 0; i < NARROW_WORDS; i++)
			to->hash = hashed(to->hash, word[i]);
		to->hashed = NARROW_WORDS;
	} else {
		for (int i = 1; i < SLOT_WORDS; i++)
			word[i] = there[i];
		to->words = SLOT_WORDS;
	}
	if (check && !read_user(&there[2], sizeof(*there), impl + spec->tensor_storage) && there[2] &&
	    !read_user(&word[to->words], sizeof(*word), there[2] + spec->storage_bytes)) {
		outcome = TENSOR_CHECKED;
		to->words++;
	}
	if (there[0] > INLINE_DIMS && read_elsewhere(to, there[0], there[1]))
		return TENSOR_CUT;
	return outcome;
}

/* Of a call that has more than narrow tensors: all of its words. */
VERIFIED_ONCE int hash_words(struct thread_state *t)
{
	__u64 hash;

	if (!t)
		return 0;
	hash = t->shapes_hash;
	for (__u32 i = 0; i < TENSORS_WORDS && i < t->tensors.words; i++)
		hash = hashed(hash, t->tensors.word[i]);
	t->shapes_hash = hash;
	return 0;
}

/* What an argument turned out to be, before its words are read: each kind is read in one place. */
enum argument_kind {
	ARGUMENT_OTHER,
	ARGUMENT_TENSOR,
	ARGUMENT_LIST,
};

/* Reads one argument. */
VERIFIED_ONCE int read_argument(struct thread_state *t, const struct probe_spec *spec, __u32 i)
{
	const struct capture *c;
	struct room to = {};
	__u64 v, next, *word;
	/* On the stack: a copy to there is what the kernel has least to check of (usercopy). */
	__u64 there[SLOT_WORDS], *pair = there;
	enum argument_kind kind = ARGUMENT_OTHER;
	__u8 outcome = TENSOR_FAULT;
	__u32 at;

	if (!t || !spec || i >= MAX_ARGS)
		return 0;
	c = tensor_capture(spec, i);
	at = t->tensors.words;
	t->tensors.outcome[i] = TENSOR_FAULT;
	if (!c || at > TENSORS_WORDS - ARGUMENT_WORDS)
		return 0;
	to.record = &t->tensors;
	to.at = at;
	to.hash = t->shapes_hash;
	word = &to.record->word[at];
	v = t->words[c->index & (TENSOR_WORDS - 1)];
	next = t->words[(c->index + 1) & (TENSOR_WORDS - 1)];
	switch (c->source) {
	case TENSOR_ONE:
		if (!v)
			outcome = TENSOR_ABSENT;
		else if (!read_user(&v, sizeof(v), v))
			kind = ARGUMENT_TENSOR;
		break;
	case TENSOR_OPTIONAL:
		if (!v) {
			outcome = TENSOR_ABSENT;
		} else if (!read_user(pair, 16, v)) {
			bool there_is = (c->offset[0] ? pair[0] : pair[1]) & 0xff;

			v = there_is ? c->offset[0] ? pair[1] : pair[0] : 0;
			kind = ARGUMENT_TENSOR;
		}
		break;
	case TENSOR_LIST:
		kind = ARGUMENT_LIST;
		outcome = TENSOR_READ;
		break;
	case TENSOR_LIST_BEHIND:
		if (read_user(pair, 24, v))
			break;
		outcome = TENSOR_BOXED;
		if (pair[2] & 0xff)
			break;
		v = pair[0];
		next = pair[1];
		kind = ARGUMENT_LIST;
		outcome = TENSOR_READ;
		break;
	case TENSOR_VECTOR:
		if (read_user(pair, 16, v))
			break;
		v = pair[0];
		next = (pair[1] - pair[0]) / sizeof(v);
		if (pair[1] - pair[0] != sizeof(v)) {
			kind = ARGUMENT_LIST;
			outcome = TENSOR_LISTED;
		} else if (!read_user(&v, sizeof(v), v)) {
			kind = ARGUMENT_TENSOR;
		}
		break;
	case TENSOR_NUMBERS:
		word[0] = next;
		outcome = TENSOR_READ;
		to.words = next < SLOT_WORDS - 1 ? 1 + (next & 15) : SLOT_WORDS;
		if (next && read_user(word + 1, next < SLOT_WORDS - 1 ? 8 * (next & 15) : 8 * (SLOT_WORDS - 1), v))
			outcome = TENSOR_FAULT;
		break;
	case TENSOR_NUMBER_BEHIND:
		if (read_user(&v, sizeof(v), v))
			break;
		/* fallthrough */
	case TENSOR_NUMBER:
		word[0] = v;
		to.words = 1;
		outcome = TENSOR_READ;
		break;
	}
	if (kind == ARGUMENT_TENSOR) {
		outcome = read_tensor(&to, spec, v, there, t->shapes_checked);
	} else if (kind == ARGUMENT_LIST) {
		read_list(word, v, next, spec->tensor_sizes + 8 * ELEMENTS_WORD);
		to.words = LIST_WORDS;
	}
	t->shapes_hash = hashed(to.hash, outcome);
	t->tensors.outcome[i] = outcome;
	t->tensors.at[i] = at;
	t->tensors.words = at + to.words;
	t->shapes_others |= to.words - to.hashed;
	return 0;
}

/*
 * At the entry of an operator whose spec names tensors: reads its arguments, and sends
 * them if the thread has not sent the same; those that are checked are sent each time.
 */
static __noinline int take_tensors(struct pt_regs *ctx, const struct probe_spec *spec, struct thread_state *t,
				   struct frame *f, __u64 calls_before)
{
	struct tensors_record *r = &t->tensors;
	struct told_shapes *told;
	__u64 bytes;

	reg_args(ctx, t->words);
	if (spec->flags & SPEC_STACK_ARGS)
		read_user(t->words + REGISTER_ARGS, 8 * (TENSOR_WORDS - REGISTER_ARGS), f->sp + STACK_ARGS);
	t->shapes_checked = (calls_before & ((1ULL << (spec->tensor_checks & 31)) - 1)) == 0;
	t->shapes_hash = hashed((__u64)epoch << 32 | spec->identity, f->spec);
	t->shapes_others = 0;
	r->words = 0;
	for (__u32 i = 0; i < MAX_ARGS && i < spec->tensors; i++)
		read_argument(t, spec, i);
	if (t->shapes_others)
		hash_words(t);
	told = &t->told[t->shapes_hash >> (64 - TOLD_SHAPES_BITS)];
	if (!t->shapes_checked && told->hash == t->shapes_hash) {
		f->shapes = told->number;
		return 0;
	}
	r->kind = RECORD_TENSORS;
	r->arguments = spec->tensors;
	r->spec = f->spec;
	r->number = ++t->shapes_sent;
	bytes = r->words;
	if (bytes > TENSORS_WORDS)
		return 0;
	bytes = __builtin_offsetof(struct tensors_record, word) + bytes * sizeof(r->word[0]);
	if (bpf_ringbuf_output(&calls, r, bytes, BPF_RB_NO_WAKEUP)) {
		lose(LOSS_SHAPES_LOST);
		return 0;
	}
	f->shapes = r->number;
	if (!t->shapes_checked) {
		told->hash = t->shapes_hash;
		told->number = r->number;
	}
	return 0;
}

#endif
