/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The part of a walk's start that is the thread's and not the registers'. */
#ifndef EBPFPROF_THREAD_H
#define EBPFPROF_THREAD_H

#include <bpf/bpf_core_read.h>
#include "stack.h"

static __always_inline __u64 thread_pointer(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return task->thread.fsbase;
#elif defined(__TARGET_ARCH_arm64)
	return task->thread.uw.tp_value;
#endif
}

/*
 * A container's program knows its threads by these numbers. The sum must be one of
 * numbers: below 6.2 the verifier lets no computed offset be added to what it knows as
 * a struct pid. In map memory, where word is, it forgets that.
 */
static __always_inline __u32 innermost_tid(struct task_struct *task, volatile __u64 *word)
{
	struct pid *pid = task->thread_pid;
	__u32 level = pid->level, size = bpf_core_type_size(struct upid);
	__u32 nr = 0;

	*word = (__u64)pid;
	bpf_probe_read_kernel(&nr, sizeof(nr),
			      (char *)*word + bpf_core_field_offset(struct pid, numbers) + level * size);
	return nr;
}

/* Fills everything but the registers from the current thread. start is in map memory. */
static __always_inline void start_in_thread(struct walk_start *start)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 ids = bpf_get_current_pid_tgid();

	start->tgid = ids >> 32;
	start->tid = ids;
	start->ns_tid = innermost_tid(task, &start->thread_pointer);
	start->thread_pointer = thread_pointer(task);
}

#endif
