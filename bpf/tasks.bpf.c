//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Lists the threads of all processes, when user space asks: where each has its
 * thread-local storage is known to the kernel alone.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "thread.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct task_entry {
	__u32 tgid;
	__u32 tid;
	__u64 thread_pointer; /* fsbase, tpidr_el0 */
};

SEC("iter/task")
int list_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct task_entry e = {};

	if (!task)
		return 0;
	e.tgid = task->tgid;
	e.tid = task->pid;
	e.thread_pointer = thread_pointer(task);
	if (e.thread_pointer) /* threads of the kernel have none */
		bpf_seq_write(ctx->meta->seq, &e, sizeof(e));
	return 0;
}

/* Keeps the wire type in the BTF, where bpf2go finds it. */
const struct task_entry *wire_task_entry __attribute__((unused));
