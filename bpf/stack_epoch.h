/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * When the frames of a stack are sent again. In user space as well
 * (testdata/native/epochs.c), with a clock of its own.
 */
#ifndef EBPFPROF_STACK_EPOCH_H
#define EBPFPROF_STACK_EPOCH_H

/* After about so long (2^33 ns are 8.6 s) frames are sent again: what a full
 * ring swallowed is unknown for no longer. */
#define STACK_EPOCH_BITS 33
#define STACKS_SEEN_BITS 16

/*
 * A word of stacks_seen has the lowest bits of the epoch in which a stack was
 * sent, and the highest of its id. It lies where the lowest bits of the id say,
 * but those that are 0 in all of them (STACK_ID).
 * The epoch's come again after 2^28 epochs, 73 years of the machine's clock.
 * Two stacks are one to it if 52 bits of their ids are the same, and the epoch:
 * of 1,000 in an epoch that is so once in 9 * 10^9 epochs, of 65,536 once in
 * 2 * 10^6. The frames of the one that comes second are missing for the rest of
 * the epoch then.
 */
#define STACK_SENT_BITS 28

/* The lowest bits of a stack's id, in which a call says how it came by it (enum line_source). */
#define STACK_FREE_BITS 2

/* An id of a hash. Never 0. */
static inline __attribute__((always_inline)) __u64 stack_id(__u64 hash)
{
	__u64 id = hash >> STACK_FREE_BITS << STACK_FREE_BITS;

	return id ? id : 1ULL << STACK_FREE_BITS;
}

static inline __attribute__((always_inline)) __u32 stack_place(__u64 id)
{
	return (id >> STACK_FREE_BITS) & ((1U << STACKS_SEEN_BITS) - 1);
}

/* Not all begin in one moment: each stack has its own phase. Never 0. */
static inline __attribute__((always_inline)) __u32 stack_epoch(__u64 id, __u64 now_ns)
{
	return 1 + ((now_ns + (id & ((1ULL << STACK_EPOCH_BITS) - 1))) >> STACK_EPOCH_BITS);
}

/* The word of a stack whose frames were sent in this epoch. */
static inline __attribute__((always_inline)) __u64 stack_sent(__u64 id, __u32 epoch)
{
	const __u64 epochs = (1ULL << STACK_SENT_BITS) - 1;

	return (id & ~epochs) | (epoch & epochs);
}

#endif
