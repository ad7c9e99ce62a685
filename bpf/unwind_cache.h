/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the walks before on the same CPU looked up: those of the one before in the
 * order in which it met them, for most of a thread's outer frames are still there
 * at the next sample, and of all by address. A rule that is cached takes one
 * line of memory, or half; in the tables it takes a dozen, each in a page of its
 * own. Return addresses are read from the stack all the same, so that this is no
 * guess: the same address in the same process has the same rule until the loader
 * changes what walks look up, which makes another generation.
 */
#ifndef EBPFPROF_UNWIND_CACHE_H
#define EBPFPROF_UNWIND_CACHE_H

#include "unwind_maps.h"
#include "unwind_lookup.h"

#define CACHED_FRAMES 128	/* of a walk, a power of two; those beyond are looked up */
#define CACHED_STEP 4		/* frames of the walk before that one of this may pass */
#define CACHED_RULES 2048		/* by address, a power of two */
#define CACHE_END (1ULL << 62)	/* above every stack pointer */

struct cached_frame {
	__u64 sp;
	__u64 key;	/* the address whose rule it is */
	struct unwind_rule rule;
};

struct cached_rule {
	__u64 key;
	__u64 walked;	/* as of walk_cache */
	struct unwind_rule rule;
};

/* Of one context, as a stack's workspace. */
struct walk_cache {
	__u64 walked;	/* generation << 32 | tgid */
	__u32 half;	/* the first frame of the walk before; the other half is this one's */
	__u32 at;	/* the next of the walk before */
	__u32 count;	/* of this walk */
	__u32 mapping;	/* of the leaf that was looked up last; 0, which has no pages, at first */
	__u64 unused;	/* so that each of what follows lies in one line of the cache: the map begins at a page */
	struct cached_frame frame[2 * CACHED_FRAMES];
	struct cached_rule rule[CACHED_RULES];
};

_Static_assert(sizeof(struct cached_frame) == 32 && sizeof(struct cached_rule) == 32, "two to a line");
_Static_assert(__builtin_offsetof(struct walk_cache, frame) % 32 == 0 && sizeof(struct walk_cache) % 32 == 0, "lines");

static __always_inline struct cached_frame *cached_before(struct walk_cache *k)
{
	return &k->frame[(k->half + k->at) & (2 * CACHED_FRAMES - 1)];
}

static __always_inline struct cached_frame *cached_now(struct walk_cache *k)
{
	return &k->frame[(k->half + CACHED_FRAMES + k->count) & (2 * CACHED_FRAMES - 1)];
}

static __always_inline void cache_begin(struct walk_cache *k, __u32 tgid, __u32 generation)
{
	k->at = 0;
	k->count = 0;
	k->half &= CACHED_FRAMES;
	if (k->walked != ((__u64)generation << 32 | tgid)) {
		cached_before(k)->sp = CACHE_END;
		k->mapping = 0;
	}
	k->walked = (__u64)generation << 32 | tgid;
}

/* The frame whose rule is in the place of the next is kept. The last place is the end's. */
static __always_inline void cache_keep(struct walk_cache *k, __u64 sp, __u64 key)
{
	struct cached_frame *f = cached_now(k);

	f->sp = sp;
	f->key = key;
	k->count += at_most(k->count + 1, CACHED_FRAMES - 1) & 1;
}

static __always_inline void cache_end(struct walk_cache *k)
{
	cached_now(k)->sp = CACHE_END;
	k->half ^= CACHED_FRAMES;
}

static __always_inline struct cached_rule *cached_rule(struct walk_cache *k, __u64 key)
{
	return &k->rule[(key * 0x9e3779b97f4a7c15ULL) >> 50 & (CACHED_RULES - 1)];
}

/* The rule of an address was found in the tables; returns where it is kept. */
static __always_inline const struct unwind_rule *cache_found(struct walk_cache *k, __u64 key,
							     const struct unwind_rule *rule)
{
	struct cached_rule *r = cached_rule(k, key);

	r->key = key;
	r->walked = k->walked;
	r->rule = *rule;
	cached_now(k)->rule = *rule;
	return &cached_now(k)->rule;
}

/* Whether the rule of an address is cached; copies it to the next place of this walk. */
static __always_inline bool cache_hit(struct walk_cache *k, __u64 sp, __u64 key)
{
	const struct cached_frame *f;
	const struct cached_rule *r;
	__u64 at = k->at;

#pragma unroll
	for (int i = 0; i < CACHED_STEP; i++) {
		OPAQUE(at);
		at += at_most(k->frame[(k->half + at) & (2 * CACHED_FRAMES - 1)].sp + 1, sp) & 1;
	}
	k->at = at;
	f = cached_before(k);
	if (f->sp == sp && f->key == key) {
		cached_now(k)->rule = f->rule;
		return true;
	}
	r = cached_rule(k, key);
	if (r->key != key || r->walked != k->walked)
		return false;
	cached_now(k)->rule = r->rule;
	return true;
}

#endif
