//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Lists the threads of all processes, when user space asks: where each has its
 * thread-local storage, and what it had in its registers when it entered the kernel,
 * is known to the kernel alone.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "syscall.h"
#include "thread.h"
#include "walk_start.h"

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

/* Beside what vmlinux.h has of it. */
struct task_struct___switches {
	unsigned long nvcsw;
	unsigned long nivcsw;
} __attribute__((preserve_access_index));

struct task_struct___cpu {
	int on_cpu;	/* only where there may be several CPUs (CONFIG_SMP) */
} __attribute__((preserve_access_index));

/* Return addresses that return probes have put their own in the place of. */
#define PENDING_RETURNS 4

/* Where a thread is that does not run: what it had in its registers when it entered
 * the kernel. Of one that runs they are those of the last time. */
struct task_registers {
	struct walk_start start;	/* but for ns_tid */
	__u64 switches;		/* how often it has left the CPU: one that has not since was still */
	__u64 probe_page;	/* where return probes return to; 0: none */
	struct {
		__u64 stack;	/* stack pointer at the function's entry */
		__u64 address;	/* what the return address was */
	} pending[PENDING_RETURNS];	/* innermost first; stack 0: no more */
	__s32 syscall;
	__u32 state;		/* 0: it runs, or waits for a CPU */
	__u32 ready;		/* it waits for a CPU; 0 where the kernel does not tell */
	__u32 reserved;
};

SEC("iter/task")
int list_registers(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct task_registers r = {};
	struct task_struct___switches *counts = (void *)task;
	struct task_struct___cpu *cpu = (void *)task;
	struct return_instance *instance;
	struct pt_regs *regs;

	if (!task)
		return 0;
	r.start.thread_pointer = thread_pointer(task);
	if (!r.start.thread_pointer)
		return 0;
	regs = (void *)bpf_task_pt_regs(task);
	start_at_registers(&r.start, regs);
	r.start.tgid = task->tgid;
	r.start.tid = task->pid;
	r.syscall = syscall_number(regs);
	r.switches = counts->nvcsw + counts->nivcsw;
	r.state = task->__state;
	/* One whose control group has had its quota is taken off the queue in this state. */
	if (!r.state && bpf_core_field_exists(cpu->on_cpu))
		r.ready = !cpu->on_cpu;
	r.probe_page = BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
	instance = BPF_CORE_READ(task, utask, return_instances);
#pragma unroll
	for (int i = 0; i < PENDING_RETURNS; i++) {
		if (!instance)
			break;
		r.pending[i].stack = BPF_CORE_READ(instance, stack);
		r.pending[i].address = BPF_CORE_READ(instance, orig_ret_vaddr);
		instance = BPF_CORE_READ(instance, next);
	}
	bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
	return 0;
}

/* Keeps the wire types in the BTF, where bpf2go finds them. */
const struct task_entry *wire_task_entry __attribute__((unused));
const struct task_registers *wire_task_registers __attribute__((unused));
