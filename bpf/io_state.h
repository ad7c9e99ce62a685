/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What each traced thread has read and written so far, added up by kind: the
 * operation, the mount and what the descriptor is of. The sums only grow, and a record
 * has all of them: user space takes the difference to the record before, so that one
 * for which the ring had no room costs nothing but the moment.
 */
#ifndef EBPFPROF_IO_STATE_H
#define EBPFPROF_IO_STATE_H

#include "lives.h"
#include "sample_ring.h"

#define IO_SLOTS 16	/* a power of two; the last one is for all kinds beyond the others */

struct io_slot {
	__u64 key;		/* 0: unused */
	struct io_class class;
	struct io_sums sums;
	__u64 first_ns;		/* when the first call since the last record began */
	__u64 last_ns;		/* when the last one ended */
	__u32 generation;	/* raised when the place is another kind's */
	__u32 dirty;		/* something came since the last record */
};

/* What a place is looked for, of. */
struct io_sought {
	__u64 vfsmount;
	__u64 dentry;
	__u64 inode;
	__u32 type;
	__u32 mode;		/* of the kernel's file */
	__u64 key;
};

struct io_thread {
	__u64 born_ns;		/* of this entry: tells threads apart that have the same number */
	__u64 start_ns;		/* of the call that it is in, 0: none */
	__u64 began_ns;		/* the first call since the sums were sent */
	__u64 until_ns;		/* a call that begins later than that sends them first */
	__u64 passed;		/* calls that were not measured: the budget had no room */
	__u64 debt_ns;		/* what measuring has cost, less what the budget has had room for since */
	__u64 paid_ns;		/* up to when */
	__u64 next_span;
	__u32 tgid;
	__u32 slot;		/* of the present call */
	__u32 second;		/* likewise, what it writes to if it reads too; IO_SLOTS: nothing */
	__u32 left_out;		/* by the budget, for now */
	__u32 last[4];		/* slot of the last call, by operation */
	__u32 own;		/* what find_slot finds */
	__u32 unused;
	__u32 sent;
	__u32 victim;		/* the next that makes room for another file (--paths) */
	__u32 user;		/* to whom the entry is charged */
	__u32 pad;
	struct io_sought sought;
	struct io_slot slots[IO_SLOTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);	/* 2 KiB a thread, only for threads that read or write */
	__type(key, __u32);
	__type(value, struct io_thread);
	__uint(max_entries, 16384);
} io_threads SEC(".maps");

VERIFIED_ONCE int send_io(const struct io_thread *t, __u32 index, __u32 tid, __u32 event)
{
	const struct io_slot *s;
	struct io_record *r;

	if (!t)
		return 0;
	r = bpf_ringbuf_reserve(&samples, sizeof(*r), 0);
	if (!r)
		return 1;
	s = &t->slots[index & (IO_SLOTS - 1)];
	r->kind = RECORD_IO;
	r->event = event;
	r->slot = index;
	r->generation = s->generation;
	r->tgid = t->tgid;
	r->tid = tid;
	r->born_ns = t->born_ns;
	r->passed = t->passed;
	r->first_ns = s->first_ns;
	r->last_ns = s->last_ns;
	r->class = s->class;
	r->sums = s->sums;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Sends what is new of one place. What does not fit stays new. */
VERIFIED_ONCE int flush_slot(struct io_thread *t, __u32 index, __u32 tid)
{
	struct io_slot *s;

	if (!t)
		return 0;
	s = &t->slots[index & (IO_SLOTS - 1)];
	if (!s->dirty)
		return 0;
	if (send_io(t, index, tid, IO_SUMS))
		return 1;
	s->dirty = 0;
	return 0;
}

VERIFIED_ONCE int flush_io(struct io_thread *t, __u32 tid)
{
	int left = 0;

	if (!t)
		return 0;
	for (__u32 i = 0; i < IO_SLOTS; i++)
		left |= flush_slot(t, i, tid);
	return left;
}

/* A thread has ended, or its number is another's: its entry goes, and its place in its
 * process's share and its user's. */
VERIFIED_ONCE int forget_io(__u32 tid)
{
	struct io_thread *t = bpf_map_lookup_elem(&io_threads, &tid);
	struct target *target;
	__u32 tgid, user;

	if (!t)
		return 0;
	tgid = t->tgid;
	user = t->user;
	if (flush_io(t, tid) | send_io(t, 0, tid, IO_ENDED))
		lose(LOSS_IO_LOST);
	if (bpf_map_delete_elem(&io_threads, &tid))
		return 0;
	give_back(user, SHARE_IO);
	target = bpf_map_lookup_elem(&targets, &tgid);
	if (target && target->io)
		__sync_fetch_and_add(&target->io, -1);
	return 0;
}

#endif
