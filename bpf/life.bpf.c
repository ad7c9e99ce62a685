//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The life of traced processes: fork, exec and exit. A child is a target from
 * the moment it exists, before the loader has heard of it.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "regs.h"
#include "lives.h"
#include "io_state.h"
#include "python_runtime.h"
#include "unwind_maps.h"
#include "unwind_vma.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

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

/* One for each CPU: nothing interrupts a tracepoint to run another. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct vma_lookup);
	__uint(max_entries, 1);
} exec_lookups SEC(".maps");

#if defined(__TARGET_ARCH_x86)
#define USER_PC(regs) (&(regs)->ip)
#else
#define USER_PC(regs) (&(regs)->pc)
#endif

/*
 * A program begins with two files, itself and the dynamic linker, which are mapped by
 * now: the samples until the loader has told of them find the one in their way.
 */
static __always_inline void find_program(struct task_struct *task, __u32 tgid)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	__u32 zero = 0;
	struct vma_lookup *l = bpf_map_lookup_elem(&exec_lookups, &zero);

	if (!l || !unwind_process(UNTOLD_PROCESS))
		return;
	l->tgid = tgid;
	l->failed = 0;
	l->key = BPF_CORE_READ(task, mm, start_code);
	find_vma_at(l);
	l->failed = 0;
	bpf_probe_read_kernel(&l->key, sizeof(l->key), USER_PC(regs));
	find_vma_at(l);
}

/* A process is one no longer, or its number another's. */
static __always_inline void forget_process(__u32 tgid)
{
	bpf_map_delete_elem(&targets, &tgid);
	bpf_map_delete_elem(&scope_counts, &tgid);
	bpf_map_delete_elem(&python_runtimes, &tgid);
	bpf_map_delete_elem(&unwind_processes, &tgid);
	forget_vmas(tgid);
}

/* TP_PROTO(struct task_struct *parent, struct task_struct *child) */
SEC("raw_tracepoint/sched_process_fork")
int process_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
	__u32 parent_tgid = BPF_CORE_READ(parent, tgid), tgid = BPF_CORE_READ(child, tgid);
	__u32 tid = BPF_CORE_READ(child, pid);
	struct target *p, inherited = {};

	/* It has not run yet: what is there is of one that had its number before. */
	forget_thread(tid);
	forget_io(tid);
	if (parent_tgid == tgid) /* a thread */
		return 0;
	forget_process(tgid);
	p = bpf_map_lookup_elem(&targets, &parent_tgid);
	if (!p || !p->follow)
		return 0;
	inherited.follow = p->follow;
	inherited.start_ticks = start_ticks(child);
	if (bpf_map_update_elem(&targets, &tgid, &inherited, BPF_ANY)) {
		lose(LOSS_PROCESS_TABLE_FULL);
		return 0;
	}
	inherit_python(parent_tgid, tgid);
	inherit_mappings(parent_tgid, tgid);
	emit_life(RECORD_FORK, child, parent_tgid, 0);
	return 0;
}

/* TP_PROTO(struct task_struct *p, pid_t old_pid, struct linux_binprm *bprm) */
SEC("raw_tracepoint/sched_process_exec")
int process_exec(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 tgid = ids >> 32, tid = ids;
	struct thread_state *t;

	if (!bpf_map_lookup_elem(&targets, &tgid))
		return 0;
	bpf_map_delete_elem(&python_runtimes, &tgid);
	bpf_map_delete_elem(&unwind_processes, &tgid);
	forget_vmas(tgid);
	find_program((struct task_struct *)ctx->args[0], tgid);
	t = bpf_map_lookup_elem(&threads, &tid);
	if (t) {
		/* The calls that were open are gone with the old program. */
		t->depth = 0;
		t->scopes = 0;
	}
	emit_life(RECORD_EXEC, (struct task_struct *)ctx->args[0], 0, 0);
	return 0;
}

/* No pid is as large (PID_MAX_LIMIT), and no pointer of the kernel's as small. */
#define MAX_PID (4 << 20)

/*
 * TP_PROTO(int pid), since 6.10 TP_PROTO(struct task_struct *task, uid_t uid): a thread of
 * the victim that has memory still, nearly always the first one. It runs in the process
 * that asked for memory, under the kernel's lock on killing: it does next to nothing.
 */
SEC("raw_tracepoint/mark_victim")
int process_out_of_memory(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	__u64 victim = ctx->args[0];
	const struct target *target;
	struct life_record *r;
	__u32 tgid = victim;

	if (victim > MAX_PID)
		tgid = BPF_CORE_READ(task, tgid);
	target = bpf_map_lookup_elem(&targets, &tgid);
	if (!target)
		return 0;
	r = bpf_ringbuf_reserve(&life, sizeof(*r), 0);
	if (!r) {
		lose(LOSS_LIFE_RING_FULL);
		return 0;
	}
	__builtin_memset(r, 0, sizeof(*r));
	r->kind = RECORD_OUT_OF_MEMORY;
	r->tgid = tgid;
	r->tid = tgid;
	r->parent_tgid = bpf_get_current_pid_tgid() >> 32;
	r->ts_ns = bpf_ktime_get_ns();
	r->process_ticks = target->start_ticks;
	r->start_ticks = r->process_ticks;
	bpf_get_current_comm(r->comm, sizeof(r->comm));
	bpf_ringbuf_submit(r, 0);
	return 0;
}

/* Where the current thread's stack was when it entered the kernel. */
static __always_inline __u64 user_sp(void)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	__u64 sp = 0;

	bpf_probe_read_kernel(&sp, sizeof(sp), &regs->sp);
	return sp;
}

/* TP_PROTO(struct task_struct *p, ...) */
SEC("raw_tracepoint/sched_process_exit")
int process_exit(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 tgid = ids >> 32, tid = ids;
	struct ending e = { .tgid = tgid, .tid = tid, .method = END_UNFINISHED };
	struct task_struct *task = (void *)ctx->args[0];
	struct thread_state *t;

	forget_io(tid);
	/* Threads that end together may find the last one to have been here before. */
	t = bpf_map_lookup_elem(&threads, &tid);
	if (t && t->tgid == tgid) {
		e.end_ns = bpf_ktime_get_ns();
		end_calls(t, user_sp(), &e);
		/* What is left was open, or is hidden below the frames that ran since. */
		for (int i = 0; i < MAX_DEPTH; i++) {
			__u32 depth = t->depth;

			if (depth == 0 || depth > MAX_DEPTH)
				break;
			emit_span(&t->frame[(depth - 1) & (MAX_DEPTH - 1)], &e);
			t->depth = depth - 1;
		}
		forget_thread(tid);
		emit_life(RECORD_THREAD_EXIT, task, 0, 0);
	}
	if (!bpf_map_lookup_elem(&targets, &tgid))
		return 0;
	/* kernel/exit.c counts the thread out of signal->live before this tracepoint. */
	if (BPF_CORE_READ(task, signal, live.counter) == 0) {
		forget_process(tgid);
		emit_life(RECORD_EXIT, task, 0, BPF_CORE_READ(task, exit_code));
	}
	return 0;
}
