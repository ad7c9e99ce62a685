/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the kernel's tables have of a process or a thread, and when it goes. The
 * numbers are used again: what is left under one when a new task gets it was
 * another's, whose end went unseen. And no process may take all of a table, nor may all
 * of a user's (shares.h).
 */
#ifndef EBPFPROF_LIVES_H
#define EBPFPROF_LIVES_H

#include "shares.h"

/* Shares of one process in the tables of threads, of waits and of those that read and write, which have 16,384
 * places for all (tracer/limits.go). */
#define PROCESS_THREADS 4096
#define PROCESS_WAITS 4096
#define PROCESS_IO 4096
/* Likewise, of the 4,096 scopes that are open at once. */
#define PROCESS_SCOPES 1024

static __always_inline bool thread_allowed(__u32 tgid, __u32 user)
{
	const struct target *target = bpf_map_lookup_elem(&targets, &tgid);

	if (target && target->threads < PROCESS_THREADS && share_left(user, SHARE_THREADS, USER_THREADS))
		return true;
	refuse(user, tgid, SHARE_THREADS, LOSS_THREAD_QUOTA);
	return false;
}

static __always_inline void count_thread(__u32 tgid, __u32 user)
{
	struct target *target = bpf_map_lookup_elem(&targets, &tgid);

	if (target)
		__sync_fetch_and_add(&target->threads, 1);
	take_share(user, SHARE_THREADS);
}

/* How many scopes of a process are open; none where the table has no room for it. */
static __always_inline __u32 *open_scopes(__u32 tgid)
{
	__u32 none = 0, *n = bpf_map_lookup_elem(&scope_counts, &tgid);

	if (n)
		return n;
	bpf_map_update_elem(&scope_counts, &tgid, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&scope_counts, &tgid);
}

static __always_inline void forget_scope(__u32 tgid, __u32 user)
{
	__u32 *n = bpf_map_lookup_elem(&scope_counts, &tgid);

	if (n && *n)
		__sync_fetch_and_add(n, -1);
	give_back(user, SHARE_SCOPES);
}

/* A thread's entry goes, and with it its place in the shares of its process and its user. */
static __always_inline void forget_thread(__u32 tid)
{
	const struct thread_state *thread = bpf_map_lookup_elem(&threads, &tid);
	struct target *target;
	__u32 tgid, user;

	if (!thread)
		return;
	tgid = thread->tgid;
	user = thread->user;
	if (bpf_map_delete_elem(&threads, &tid))
		return;
	give_back(user, SHARE_THREADS);
	target = bpf_map_lookup_elem(&targets, &tgid);
	if (target && target->threads)
		__sync_fetch_and_add(&target->threads, -1);
}

#endif
