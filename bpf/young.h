/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Children that have just begun. Most programs that a job starts end before anything could
 * be learnt of them, and looking at one costs the job more than it takes itself. So a child
 * is no target yet: it is young, and the kernel alone follows it. It is taken up when it
 * calls what is probed, or when user space finds that it is old enough. What ends before is
 * added up by command.
 */
#ifndef EBPFPROF_YOUNG_H
#define EBPFPROF_YOUNG_H

#include "lives.h"
#include "python_runtime.h"
#include "unwind_maps.h"
#include "unwind_vma.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, struct young);
	__uint(max_entries, 4096);
} young_ones SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct short_key);
	__type(value, struct short_sum);
	__uint(max_entries, 4096);
} short_lives SEC(".maps");

static __always_inline void forget_young(__u32 tgid)
{
	const struct young *y = bpf_map_lookup_elem(&young_ones, &tgid);
	__u32 user;

	if (!y)
		return;
	user = y->user;
	if (!bpf_map_delete_elem(&young_ones, &tgid))
		give_back(user, SHARE_YOUNG);
}

/* The copy of a process has its interpreter, at the same addresses. */
static __always_inline void inherit_python(__u32 parent, __u32 child)
{
	struct python_runtime *p = bpf_map_lookup_elem(&python_runtimes, &parent);
	struct python_runtime inherited;

	if (!p)
		return;
	inherited = *p;
	if (bpf_map_update_elem(&python_runtimes, &child, &inherited, BPF_ANY))
		lose(LOSS_WALK_TABLE_FULL);
}

/* And the same files, mapped at the same addresses. */
static __always_inline void inherit_mappings(__u32 parent, __u32 child)
{
	const struct unwind_process *p = unwind_process(parent);
	const struct vma_cache *c;

	if (p && bpf_map_update_elem(&unwind_processes, &child, p, BPF_ANY))
		lose(LOSS_WALK_TABLE_FULL);
	if (HAVE_FIND_VMA && (c = bpf_map_lookup_elem(&vma_caches, &parent)))
		bpf_map_update_elem(&vma_caches, &child, c, BPF_ANY);
}

/* A young process calls what is probed: it is a target from here on, with what it has of
 * the one that it is a copy of. Not 0: it is one. */
VERIFIED_ONCE int take_up(__u32 tgid)
{
	struct young *y = bpf_map_lookup_elem(&young_ones, &tgid);
	struct target t = { .follow = 1 };
	struct life_record *r;

	if (!y || y->end_ns)
		return 0;
	t.start_ticks = y->start_ticks;
	t.user = y->user;
	if (!share_left(t.user, SHARE_PROCESSES, user_processes)) {
		refuse(t.user, tgid, SHARE_PROCESSES, LOSS_PROCESS_QUOTA);
		return 0;
	}
	note_target(tgid);
	if (bpf_map_update_elem(&targets, &tgid, &t, BPF_NOEXIST)) {
		if (bpf_map_lookup_elem(&targets, &tgid))
			return 1;	/* another thread was faster */
		refuse(t.user, tgid, SHARE_PROCESSES, LOSS_PROCESS_TABLE_FULL);
		return 0;
	}
	take_share(t.user, SHARE_PROCESSES);
	if (y->copy_of) {
		inherit_python(y->copy_of, tgid);
		inherit_mappings(y->copy_of, tgid);
	}
	r = bpf_ringbuf_reserve(&life, sizeof(*r), 0);
	if (r) {
		__builtin_memset(r, 0, sizeof(*r));
		r->kind = RECORD_FORK;
		r->tgid = tgid;
		r->tid = tgid;
		r->parent_tgid = y->parent;
		r->execed = y->execed;
		r->ts_ns = y->start_ns;
		r->process_ticks = y->start_ticks;
		r->start_ticks = y->start_ticks;
		__builtin_memcpy(r->comm, y->comm, sizeof(r->comm));
		bpf_ringbuf_submit(r, 0);
	} else {
		lose(LOSS_LIFE_RING_FULL);
	}
	forget_young(tgid);
	return 1;
}

#endif
