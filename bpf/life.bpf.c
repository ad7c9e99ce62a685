//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The life of traced processes: fork, exec and exit. A child is a target from
 * the moment it exists, before the loader has heard of it, or young (young.h).
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "regs.h"
#include "lives.h"
#include "io_state.h"
#include "young.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

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
	const struct target *target = bpf_map_lookup_elem(&targets, &tgid);

	if (target) {
		__u32 user = target->user;

		if (!bpf_map_delete_elem(&targets, &tgid))
			give_back(user, SHARE_PROCESSES);
	}
	forget_young(tgid);
	bpf_map_delete_elem(&scope_counts, &tgid);
	bpf_map_delete_elem(&python_runtimes, &tgid);
	bpf_map_delete_elem(&unwind_processes, &tgid);
	forget_vmas(tgid);
}

/*
 * A child begins, whose parent is a target, or young itself: then it counts for whom its
 * parent counts for. The one before which there was none for a while is told of, so that
 * user space looks now and then who has grown old.
 */
static __always_inline void add_young(struct task_struct *child, __u32 parent, const struct young *of)
{
	__u32 tgid = BPF_CORE_READ(child, tgid);
	struct young y = {
		.parent = parent,
		.copy_of = parent,
		.start_ns = bpf_ktime_get_ns(),
		.start_ticks = start_ticks(child),
		.user = current_user(),
	};

	if (!share_left(y.user, SHARE_YOUNG, USER_YOUNG)) {
		refuse(y.user, parent, SHARE_YOUNG, LOSS_PROCESS_QUOTA);
		return;
	}
	if (of) {
		y.parent = of->parent;
		y.copy_of = of->copy_of;
		y.execed = of->execed;
	}
	bpf_probe_read_kernel(y.comm, sizeof(y.comm), child->comm);
	if (bpf_map_update_elem(&young_ones, &tgid, &y, BPF_NOEXIST)) {
		refuse(y.user, parent, SHARE_YOUNG, LOSS_PROCESS_TABLE_FULL);
		return;
	}
	take_share(y.user, SHARE_YOUNG);
	if (!young_told) {
		young_told = 1;
		emit_life(RECORD_YOUNG, child, parent, 0);
	}
}

/* TP_PROTO(struct task_struct *parent, struct task_struct *child) */
SEC("raw_tracepoint/sched_process_fork")
int process_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
	__u32 parent_tgid = BPF_CORE_READ(parent, tgid), tgid = BPF_CORE_READ(child, tgid);
	__u32 tid = BPF_CORE_READ(child, pid);
	struct target *p, inherited = {};
	const struct young *of;

	/* It has not run yet: what is there is of one that had its number before. */
	forget_thread(tid);
	forget_io(tid);
	if (parent_tgid == tgid) /* a thread */
		return 0;
	forget_process(tgid);
	p = bpf_map_lookup_elem(&targets, &parent_tgid);
	if (p && !p->follow)
		return 0;
	of = p ? 0 : bpf_map_lookup_elem(&young_ones, &parent_tgid);
	if (!p && !of)
		return 0;
	if (of || !look_at_once) {
		add_young(child, parent_tgid, of);
		return 0;
	}
	inherited.follow = p->follow;
	inherited.start_ticks = start_ticks(child);
	inherited.user = current_user();
	if (!share_left(inherited.user, SHARE_PROCESSES, user_processes)) {
		refuse(inherited.user, parent_tgid, SHARE_PROCESSES, LOSS_PROCESS_QUOTA);
		return 0;
	}
	note_target(tgid);
	if (bpf_map_update_elem(&targets, &tgid, &inherited, BPF_NOEXIST)) {
		refuse(inherited.user, parent_tgid, SHARE_PROCESSES, LOSS_PROCESS_TABLE_FULL);
		return 0;
	}
	take_share(inherited.user, SHARE_PROCESSES);
	inherit_python(parent_tgid, tgid);
	inherit_mappings(parent_tgid, tgid);
	emit_life(RECORD_FORK, child, parent_tgid, 0);
	return 0;
}

/* A young process is another program from here on. */
static __always_inline void young_execed(__u32 tgid)
{
	struct young *y = bpf_map_lookup_elem(&young_ones, &tgid);

	if (!y)
		return;
	y->execed = 1;
	y->copy_of = 0;
	bpf_get_current_comm(y->comm, sizeof(y->comm));
}

/* TP_PROTO(struct task_struct *p, pid_t old_pid, struct linux_binprm *bprm) */
SEC("raw_tracepoint/sched_process_exec")
int process_exec(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 tgid = ids >> 32, tid = ids;
	struct thread_state *t;

	if (!bpf_map_lookup_elem(&targets, &tgid)) {
		young_execed(tgid);
		return 0;
	}
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

/* The last thread of a young process ends. What it used of a CPU is known for sure when the
 * kernel lets go of it; until then, as it is at its last tick. */
static __always_inline void young_ended(struct task_struct *task, __u32 tgid)
{
	struct young *y = bpf_map_lookup_elem(&young_ones, &tgid);

	if (!y)
		return;
	y->failed = BPF_CORE_READ(task, exit_code) != 0;
	y->cpu_ns = BPF_CORE_READ(task, se.sum_exec_runtime) + BPF_CORE_READ(task, signal, sum_sched_runtime);
	y->end_ns = bpf_ktime_get_ns();
}

/* Adds a process that was young until its end to those of its command. */
static __always_inline void add_short(const struct young *y)
{
	struct short_key key = { .parent = y->parent, .execed = y->execed };
	struct short_sum blank = { .first_ns = y->start_ns }, *sum;

	__builtin_memcpy(key.comm, y->comm, sizeof(key.comm));
	sum = bpf_map_lookup_elem(&short_lives, &key);
	if (!sum) {
		bpf_map_update_elem(&short_lives, &key, &blank, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&short_lives, &key);
	}
	if (!sum) {
		lose(LOSS_SHORT_LIVES);
		return;
	}
	__sync_fetch_and_add(&sum->wall_ns, y->end_ns - y->start_ns);
	__sync_fetch_and_add(&sum->cpu_ns, y->cpu_ns);
	__sync_fetch_and_add(&sum->failed, y->failed);
	__sync_fetch_and_add(&sum->count, 1);
}

/* TP_PROTO(struct task_struct *p): its parent has taken note of its end, and every
 * thread's time is in the process's. */
SEC("raw_tracepoint/sched_process_free")
int process_free(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	__u32 tgid = BPF_CORE_READ(task, tgid);
	struct young *y;
	__u64 cpu_ns;

	if (BPF_CORE_READ(task, pid) != tgid)
		return 0;
	y = bpf_map_lookup_elem(&young_ones, &tgid);
	if (!y || !y->end_ns || y->start_ticks != start_ticks(task))
		return 0;
	cpu_ns = BPF_CORE_READ(task, signal, sum_sched_runtime);
	if (cpu_ns > y->cpu_ns)
		y->cpu_ns = cpu_ns;
	add_short(y);
	forget_young(tgid);
	return 0;
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
	/* kernel/exit.c counts the thread out of signal->live before this tracepoint. */
	if (BPF_CORE_READ(task, signal, live.counter) != 0)
		return 0;
	if (!bpf_map_lookup_elem(&targets, &tgid)) {
		young_ended(task, tgid);
	} else {
		forget_process(tgid);
		emit_life(RECORD_EXIT, task, 0, BPF_CORE_READ(task, exit_code));
	}
	return 0;
}

/* Keeps the wire types in the BTF, where bpf2go finds them. */
const struct young *wire_young __attribute__((unused));
const struct short_key *wire_short_key __attribute__((unused));
const struct short_sum *wire_short_sum __attribute__((unused));
