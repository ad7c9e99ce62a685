/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the walks before on the same CPU looked up: those of the one before in the
 * order in which it met them, for most of a thread's outer frames are still there
 * at the next sample, and of all by address. A rule that is known here takes one
 * line of memory, or half; in the tables it takes a dozen, each in a page of its
 * own. Return addresses are read from the stack all the same, so that this is no
 * guess: the same address in the same process has the same rule until the loader
 * changes what walks look up, which makes another generation.
 */
#ifndef EBPFPROF_UNWIND_KNOWN_H
#define EBPFPROF_UNWIND_KNOWN_H

#include "unwind_maps.h"
#include "unwind_lookup.h"

#define KNOWN_FRAMES 128	/* of a walk, a power of two; those beyond are looked up */
#define KNOWN_STEP 4		/* frames of the walk before that one of this may pass */
#define KNOWN_RULES 2048		/* by address, a power of two */
#define KNOWN_END (1ULL << 62)	/* above every stack pointer */

struct known_frame {
	__u64 sp;
	__u64 key;	/* the address whose rule it is */
	struct unwind_rule rule;
};

struct known_rule {
	__u64 key;
	__u64 walked;	/* as of known_walk */
	struct unwind_rule rule;
};

/* Of one context, as a stack's workspace. */
struct known_walk {
	__u64 walked;	/* generation << 32 | tgid */
	__u32 half;	/* the first frame of the walk before; the other half is this one's */
	__u32 at;	/* the next of the walk before */
	__u32 count;	/* of this walk */
	__u32 mapping;	/* of the leaf that was looked up last; 0, which has no pages, at first */
	__u64 unused;	/* so that each of what follows lies in one line of the cache: the map begins at a page */
	struct known_frame frame[2 * KNOWN_FRAMES];
	struct known_rule rule[KNOWN_RULES];
};

_Static_assert(sizeof(struct known_frame) == 32 && sizeof(struct known_rule) == 32, "two to a line");
_Static_assert(__builtin_offsetof(struct known_walk, frame) % 32 == 0 && sizeof(struct known_walk) % 32 == 0, "lines");

static __always_inline struct known_frame *known_before(struct known_walk *k)
{
	return &k->frame[(k->half + k->at) & (2 * KNOWN_FRAMES - 1)];
}

static __always_inline struct known_frame *known_now(struct known_walk *k)
{
	return &k->frame[(k->half + KNOWN_FRAMES + k->count) & (2 * KNOWN_FRAMES - 1)];
}

static __always_inline void known_begin(struct known_walk *k, __u32 tgid, __u32 generation)
{
	k->at = 0;
	k->count = 0;
	k->half &= KNOWN_FRAMES;
	if (k->walked != ((__u64)generation << 32 | tgid)) {
		known_before(k)->sp = KNOWN_END;
		k->mapping = 0;
	}
	k->walked = (__u64)generation << 32 | tgid;
}

/* The frame whose rule is in the place of the next is kept. The last place is the end's. */
static __always_inline void known_keep(struct known_walk *k, __u64 sp, __u64 key)
{
	struct known_frame *f = known_now(k);

	f->sp = sp;
	f->key = key;
	k->count += at_most(k->count + 1, KNOWN_FRAMES - 1) & 1;
}

static __always_inline void known_end(struct known_walk *k)
{
	known_now(k)->sp = KNOWN_END;
	k->half ^= KNOWN_FRAMES;
}

static __always_inline struct known_rule *known_rule(struct known_walk *k, __u64 key)
{
	return &k->rule[(key * 0x9e3779b97f4a7c15ULL) >> 50 & (KNOWN_RULES - 1)];
}

/* The rule of an address was found in the tables; returns where it is kept. */
static __always_inline const struct unwind_rule *known_found(struct known_walk *k, __u64 key,
							     const struct unwind_rule *rule)
{
	struct known_rule *r = known_rule(k, key);

	r->key = key;
	r->walked = k->walked;
	r->rule = *rule;
	known_now(k)->rule = *rule;
	return &known_now(k)->rule;
}

/* Whether the rule of an address is known; copies it to the next place of this walk. */
static __always_inline bool known_again(struct known_walk *k, __u64 sp, __u64 key)
{
	const struct known_frame *f;
	const struct known_rule *r;
	__u64 at = k->at;

#pragma unroll
	for (int i = 0; i < KNOWN_STEP; i++) {
		OPAQUE(at);
		at += at_most(k->frame[(k->half + at) & (2 * KNOWN_FRAMES - 1)].sp + 1, sp) & 1;
	}
	k->at = at;
	f = known_before(k);
	if (f->sp == sp && f->key == key) {
		known_now(k)->rule = f->rule;
		return true;
	}
	r = known_rule(k, key);
	if (r->key != key || r->walked != k->walked)
		return false;
	known_now(k)->rule = r->rule;
	return true;
}

#endif
