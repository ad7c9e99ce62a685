/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * How much of the kernel's tables each user's processes have. One process has a share of
 * its own (lives.h), but a job may have many: a user has three quarters of a table at the
 * most, so that a neighbour's process always finds the share that it may have. Each entry
 * holds the user that it is charged to, and is given back to that user, whoever its process is then.
 */
#ifndef EBPFPROF_SHARES_H
#define EBPFPROF_SHARES_H

#include "maps.h"

/* Of the sizes in maps.h, io_state.h and sample.bpf.c (tracer/limits.go). */
#define USER_THREADS 12288
#define USER_WAITS 12288
#define USER_IO 12288
#define USER_SCOPES 3072
#define USER_YOUNG 3072
/* Likewise, of the processes; set by the loader where their table has another size. */
const volatile __u32 user_processes = 3072;

/* Users that can have a share. */
#define MAX_USERS 4096
/* include/linux/user_namespace.h: as deep as they may be nested. */
#define MOST_NAMESPACES 33

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, struct user_share);
	__uint(max_entries, MAX_USERS);
} user_shares SEC(".maps");

/* What user space has put into the tables for a user, less what it has taken out. It alone
 * writes here, and the programs alone write above. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, struct user_change);
	__uint(max_entries, MAX_USERS);
} user_changes SEC(".maps");

/*
 * To whom the current thread is charged: its real user; in a user namespace, whose processes
 * may be of 65,536 users, whoever made it, or the outermost of those that it is in. Those that
 * root makes are containers: there it is the user that the container's root is outside.
 */
static __noinline __u32 current_user(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	const struct cred *cred = BPF_CORE_READ(task, real_cred);
	struct user_namespace *ns = BPF_CORE_READ(cred, user_ns);
	__u32 owner, extents;

	for (int i = 0; i < MOST_NAMESPACES && BPF_CORE_READ(ns, level) > 1; i++)
		ns = BPF_CORE_READ(ns, parent);
	if (!BPF_CORE_READ(ns, level))
		return BPF_CORE_READ(cred, uid.val);
	owner = BPF_CORE_READ(ns, owner.val);
	extents = BPF_CORE_READ(ns, uid_map.nr_extents);
	if (owner || !extents || extents > UID_GID_MAP_MAX_BASE_EXTENTS)
		return owner;
	return BPF_CORE_READ(ns, uid_map.extent[0].lower_first);
}

static __always_inline struct user_share *share_of(__u32 user)
{
	struct user_share blank = {}, *s = bpf_map_lookup_elem(&user_shares, &user);

	if (s)
		return s;
	bpf_map_update_elem(&user_shares, &user, &blank, BPF_NOEXIST);
	return bpf_map_lookup_elem(&user_shares, &user);
}

/* Whether a user may have one more place of a table. */
static __always_inline bool share_left(__u32 user, enum share of, __u32 most)
{
	const struct user_share *s = share_of(user);
	const struct user_change *c = bpf_map_lookup_elem(&user_changes, &user);

	return s && (__s32)(s->taken[of] + (c ? c->by[of] : 0)) < (__s32)most;
}

static __always_inline void take_share(__u32 user, enum share of)
{
	struct user_share *s = share_of(user);

	if (s)
		__sync_fetch_and_add(&s->taken[of], 1);
}

static __always_inline void give_back(__u32 user, enum share of)
{
	struct user_share *s = bpf_map_lookup_elem(&user_shares, &user);

	if (s)
		__sync_fetch_and_add(&s->taken[of], -1);
}

/* Counts what has no place in a table, and says of whom it was. */
static __always_inline void refuse(__u32 user, __u32 tgid, enum share of, __u32 reason)
{
	struct user_share *s = share_of(user);

	if (s) {
		s->last[of] = tgid;
		__sync_fetch_and_add(&s->refused[of], 1);
	}
	lose(reason);
}

#endif
