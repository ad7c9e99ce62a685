/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What a walk went by: the addresses of the words of memory that told it where
 * to go next, in the order in which it met them. As long as those words keep
 * their values, a walk that begins alike finds the same frames (memo.h).
 */
#ifndef EBPFPROF_TRAIL_H
#define EBPFPROF_TRAIL_H

#define TRAIL_WORDS 256

/* 0: nothing memoises the object's walks by their words. */
#ifndef KEEP_TRAIL
#define KEEP_TRAIL 1
#endif

struct trail {
	__u32 length;
	__u32 broken;	/* not 0: words alone do not tell where the walk went */
	__u64 address[TRAIL_WORDS];
};

static __always_inline void trail_begin(struct trail *t)
{
	t->length = 0;
	t->broken = 0;
}

static __always_inline void trail_add(struct trail *t, __u64 address)
{
	__u32 n = t->length;

	if (!KEEP_TRAIL)
		return;
	t->address[n & (TRAIL_WORDS - 1)] = address;
	t->length = n + 1;
	/* No branch: the verifier would see two ways from each word. */
	t->broken |= (address & 7) | n / TRAIL_WORDS;
}

#endif
