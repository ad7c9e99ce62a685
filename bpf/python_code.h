/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which code object a Python frame runs, and what tells it from others. */
#ifndef EBPFPROF_PYTHON_CODE_H
#define EBPFPROF_PYTHON_CODE_H

#include "python_memory.h"
#include "python_runtime.h"
#include "stack.h"

#define PYTHON_CODE_BYTES 160	/* of a PyCodeObject: up to the line table */

/*
 * Code objects that samples before met, by the frame. A frame whose own words are what
 * they were, with the same function, globals and instruction, surely runs the same code
 * object, unless what a program compiles and throws away comes to lie where the one
 * before lay. Therefore the code object is read all the same one time in PYTHON_CHECK.
 */
#define PYTHON_CACHED 256	/* places, a power of two */
#define PYTHON_CHECK 8		/* likewise */
#define PYTHON_OWN_WORDS 6	/* of a frame: what it runs, where it finds names */

struct python_cached_code {
	__u64 frame;
	__u64 words;	/* their hash; with the process and the instruction */
	__u32 checksum;
	__u32 uses;
	__u64 unused;
};

/* Two frames may want one place. A place is one line of the cache. */
struct python_cache {
	struct python_cached_code code[PYTHON_CACHED][2];
};

static __always_inline __u32 python_mix(__u32 sum, __u32 value)
{
	sum = (sum ^ value) * 0x9e3779b1;
	return sum ^ sum >> 15;
}

/*
 * Of what does not change while a code object lives, so that another one at its
 * address is noticed. symbolize/cpython computes the same.
 */
static __always_inline __u32 python_checksum(const struct python_runtime *rt, const __u64 *code)
{
	__u64 name = PYTHON_WORD(code, rt->code_name), lines = PYTHON_WORD(code, rt->code_linetable);
	__u32 sum = 0;

	sum = python_mix(sum, PYTHON_INT(code, rt->code_argcount));
	sum = python_mix(sum, PYTHON_INT(code, rt->code_kwonly));
	sum = python_mix(sum, PYTHON_INT(code, rt->code_flags));
	sum = python_mix(sum, PYTHON_INT(code, rt->code_line));
	sum = python_mix(sum, (__u32)name);
	sum = python_mix(sum, name >> 32);
	sum = python_mix(sum, (__u32)lines);
	sum = python_mix(sum, lines >> 32);
	return sum | !sum;
}

/* Where the bytecode begins that the frame runs: in the code object, or in a
 * thread's own copy of it. */
static __always_inline __u64 python_code_start(const struct python_runtime *rt,
					       const struct python_memory *m, __u64 at, __u64 code)
{
	__u64 start = code + rt->code_start, copies, copy;
	__u32 index;

	if (rt->frame_tlbc == PYTHON_ABSENT)
		return start;
	index = PYTHON_PIECE_INT(m, at, rt->frame_tlbc);
	if (!index || !python_read_word(&copies, code + rt->code_tlbc))
		return start;
	/* Behind their number; entry 0 is the code object's own. */
	if (!python_read_word(&copy, copies + 8 + 8ULL * index) || !copy)
		return start;
	return copy;
}

enum python_described {
	PYTHON_DESCRIBED,
	PYTHON_DESCRIBED_COLD,	/* its code object could not be read */
	PYTHON_DESCRIBED_NOT,	/* what it refers to is no code object */
};

/* A hash of what tells that the frame still runs its code object. */
static __always_inline __u64 python_own_words(const struct python_memory *m, __u64 at, __u32 instruction)
{
	__u64 sum = ((__u64)m->tgid << 32 | instruction) * 0x9e3779b97f4a7c15ULL;

#pragma unroll
	for (int i = 0; i < PYTHON_OWN_WORDS; i++)
		sum = (sum ^ PYTHON_PIECE_WORD(m, at, 8 * i)) * 0x9e3779b97f4a7c15ULL;
	return sum ^ sum >> 29;
}

/* Reads a frame's code object. */
static __noinline int python_read_code(const struct python_runtime *rt, struct python_memory *m,
				       struct python_frame *f)
{
	if (bpf_probe_read_user(m->code, PYTHON_CODE_BYTES, (void *)f->code))
		return PYTHON_DESCRIBED_COLD;
	if (rt->code_type && PYTHON_WORD(m->code, rt->object_type) != rt->code_type)
		return PYTHON_DESCRIBED_NOT;
	f->checksum = python_checksum(rt, m->code);
	return PYTHON_DESCRIBED;
}

/* Reads it, and keeps what it is for the samples to come. */
static __noinline int python_learn_code(const struct python_runtime *rt, struct python_memory *m,
					struct python_cached_code *k, struct python_frame *f)
{
	int described = python_read_code(rt, m, f);

	k->checksum = f->checksum;
	return described;
}

/* Likewise, if it is not cached. */
static __always_inline int python_use_cached(const struct python_runtime *rt, struct python_memory *m,
					    struct python_cache *cache, __u64 frame, __u64 at,
					    struct python_frame *f)
{
	__u64 words = python_own_words(m, at, f->instruction);
	struct python_cached_code *k = cache->code[(frame * 0x9e3779b97f4a7c15ULL) >> 50 & (PYTHON_CACHED - 1)];
	__u32 before;
	int described;

	if (k->frame != frame) {
		if (k[1].frame != frame)
			k[1] = *k;	/* the older one goes */
		else
			k++;
	}
	before = k->checksum;
	if (k->frame != frame || k->words != words || !before) {
		k->frame = frame;
		k->words = words;
		return python_learn_code(rt, m, k, f);
	}
	f->checksum = before;
	if (++k->uses & (PYTHON_CHECK - 1))
		return PYTHON_DESCRIBED;
	f->checksum = 0;
	described = python_learn_code(rt, m, k, f);
	if (described == PYTHON_DESCRIBED_COLD)
		return described;	/* which says nothing of what is there */
	m->checked++;
	m->differed += f->checksum != before;
	return described;
}

/* Describes the frame at a place in the windows. cache: may be null. */
static __always_inline int python_describe(const struct python_runtime *rt, struct python_memory *m,
					   struct python_cache *cache, __u64 frame, __u64 at,
					   struct python_frame *f)
{
	/* 3.14 tags references in their lowest bits. */
	__u64 code = PYTHON_PIECE_WORD(m, at, rt->frame_code) & ~7ULL;

	f->code = code;
	f->checksum = 0;
	if (rt->code_start) {
		__s64 bytes = PYTHON_PIECE_WORD(m, at, rt->frame_instruction) -
			      python_code_start(rt, m, at, code);

		f->instruction = bytes >> 1;
		if (bytes < -2 || bytes > 1 << 30)
			f->instruction = PYTHON_INSTRUCTION_UNKNOWN;
	} else {
		f->instruction = (__s32)PYTHON_PIECE_INT(m, at, rt->frame_instruction) >>
				 (rt->lasti_shift & 1);
	}
	return cache ? python_use_cached(rt, m, cache, frame, at, f) : python_read_code(rt, m, f);
}

#endif
