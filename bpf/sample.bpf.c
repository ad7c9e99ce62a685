//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Looks at threads: on the CPU by a clock, off it when they come back after a
 * long wait.
 *
 * A wait is measured between two sched_switch. Its stack is taken at the end of
 * the system call that it happened in, by the thread itself: only long waits
 * pay for a walk, and no kprobe is needed. A wait for a page or for the CPU, and
 * a stop, have no such end: the stack is taken when the thread leaves the CPU,
 * of those that wait for the CPU not more often than a clock would.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "guard.h"
#include "regs.h"

#define KEEP_TRAIL 0
#include "stacks.h"
#include "lives.h"
#include "io.h"
#include "mapping.h"
#include "syscall.h"
#include "sample_stack.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* include/linux/sched.h */
#define TASK_STOPPED 0x4
#define TASK_TRACED 0x8
#define TASK_DEAD 0x80

/* A thread that has left the CPU, or has waited in its present system call. */
struct wait {
	__u64 out_ns;		/* when it left the CPU, 0: it is on it */
	__u64 first_ns;		/* likewise, the first time in the system call */
	__u64 waited_ns;	/* in the system call so far */
	__u64 woken_ns;		/* when it could run again, 0: it was not woken yet */
	__u64 ready_ns;		/* without a CPU though it could run, in the system call so far */
	__u64 stack_id;		/* of a wait outside of system calls */
	__u64 span_id;
	__u32 waker;
	__s32 syscall;
	__u8 state;		/* enum sample_state */
	__u8 holds_gil;
	__u8 in_gc;
	__u8 take;		/* its stack */
	__u32 user;		/* to whom the entry is charged */
	__u64 fault_ip;		/* of the instruction whose fault it has waited in */
	__u64 fault_ns;		/* for so long */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, struct wait);
	__uint(max_entries, 16384);
} waits SEC(".maps");

volatile __u64 sample_period_ns SEC(".data.samples") = 10101010;
volatile __u64 wait_threshold_ns SEC(".data.samples") = 1000000;
/* How far apart the stacks of preempted threads are taken on a CPU, on average:
 * whether it will be away for long is unknown when it goes. As many as come in
 * preempted_saved_ns may be taken at once. */
volatile __u64 preempted_gap_ns SEC(".data.samples") = 1500000;
volatile __u64 preempted_saved_ns SEC(".data.samples") = 300000000;
/* The kernel's entries of interrupts, from kallsyms; 0: not known. */
volatile __u64 interrupt_text_start SEC(".data.samples") = 0;
volatile __u64 interrupt_text_end SEC(".data.samples") = 0;

static __noinline int tick(struct bpf_perf_event_data *ctx)
{
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 tgid = ids >> 32, tid = ids;
	struct sample_record r = { .state = SAMPLE_ON_CPU, .tgid = tgid, .tid = tid };
	struct stack_workspace *w;
	struct stack_cache *cache;

	if (!maybe_target(tgid) || !recording || !bpf_map_lookup_elem(&targets, &tgid))
		return 0;
	cache = stack_cache(WORKSPACE_INTERRUPT);
	w = cache ? begin_stack(WORKSPACE_INTERRUPT) : 0;
	if (!w)
		return 0;
	r.ts_ns = bpf_ktime_get_ns();
	r.weight_ns = sample_period_ns;
	r.syscall = syscall_of(bpf_get_current_task_btf());
	start_at_kernel_entry(&w->start);
	if (!in_user_mode(&ctx->regs)) {
		kernel_frames(w, ctx);
		step_back(w);
	}
	r.stack_id = sample_stack(w, cache);
	r.span_id = span_at(tid, tgid, w->start.sp);
	r.holds_gil = w->python.holds_gil;
	r.in_gc = w->python.in_gc;
	emit_sample(&r);
	end_stack(w);
	return 0;
}

SEC("perf_event")
int sample_tick(struct bpf_perf_event_data *ctx)
{
	return tick(ctx);
}

/* Since when a CPU could have taken a stack each gap: those it took moved this on. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 1);
} preempted_since SEC(".maps");

/* The stack of a thread that is about to leave the CPU outside of a system call. */
static __noinline int stack_of_wait(void *ctx, struct wait *wait, __u32 tgid, __u32 tid)
{
	struct stack_cache *cache = stack_cache(WORKSPACE_TASK);
	struct stack_workspace *w = cache ? begin_stack(WORKSPACE_TASK) : 0;

	if (!w)
		return 0;
	start_at_kernel_entry(&w->start);
	kernel_frames(w, ctx);
	wait->stack_id = sample_stack(w, cache);
	wait->span_id = span_at(tid, tgid, w->start.sp);
	wait->holds_gil = w->python.holds_gil;
	wait->in_gc = w->python.in_gc;
	end_stack(w);
	return 0;
}

/*
 * Takes the stack where no system call's end will. What is decided is read back,
 * and found out by one way: else the verifier sees the walk once for each.
 */
static __always_inline void leave_outside_of_syscall(void *ctx, struct wait *wait, __u32 tgid, __u32 tid)
{
	__u32 zero = 0;
	__u64 *since = bpf_map_lookup_elem(&preempted_since, &zero);

	if (!since)
		return;
	wait->take = wait->state != SAMPLE_IN_SYSCALL;
	if (wait->state == SAMPLE_PREEMPTED) {
		if (wait->out_ns - *since > preempted_saved_ns)
			*since = wait->out_ns - preempted_saved_ns;
		if (wait->out_ns - *since < preempted_gap_ns)
			wait->take = 0;
		else
			*since += preempted_gap_ns;
	}
	if (*(volatile __u8 *)&wait->take)
		stack_of_wait(ctx, wait, tgid, tid);
}

/* The first wait of a thread: its place in the table, if its process and its user have one left. */
static __noinline struct wait *new_wait(__u32 tgid, __u32 tid)
{
	struct target *target = bpf_map_lookup_elem(&targets, &tgid);
	struct wait blank = {}, *w;

	if (!target)
		return 0;
	blank.user = current_user();
	if (target->waits >= PROCESS_WAITS || !share_left(blank.user, SHARE_WAITS, USER_WAITS)) {
		refuse(blank.user, tgid, SHARE_WAITS, LOSS_WAIT_QUOTA);
		return 0;
	}
	if (!bpf_map_update_elem(&waits, &tid, &blank, BPF_NOEXIST)) {
		__sync_fetch_and_add(&target->waits, 1);
		take_share(blank.user, SHARE_WAITS);
	}
	w = bpf_map_lookup_elem(&waits, &tid);
	if (!w)
		refuse(blank.user, tgid, SHARE_WAITS, LOSS_WAIT_TABLE_FULL);
	return w;
}

/* A thread leaves the CPU for the last time; its process may be none by now. */
static __noinline int end_waits(__u32 tgid, __u32 tid)
{
	const struct wait *w = bpf_map_lookup_elem(&waits, &tid);
	struct target *target;
	__u32 user;

	if (!w)
		return 0;
	user = w->user;
	if (bpf_map_delete_elem(&waits, &tid))
		return 0;
	give_back(user, SHARE_WAITS);
	target = bpf_map_lookup_elem(&targets, &tgid);
	if (target && target->waits)
		__sync_fetch_and_add(&target->waits, -1);
	return 0;
}

static __always_inline void leave_cpu(void *ctx, struct task_struct *task, bool preempted)
{
	__u32 tid = task->pid, tgid = task->tgid, state = task->__state;
	struct wait *w = bpf_map_lookup_elem(&waits, &tid);

	if (!w) {
		w = new_wait(tgid, tid);
		if (!w)
			return;
	}
	w->waker = 0;
	w->woken_ns = 0;
	w->stack_id = 0;
	w->span_id = 0;
	w->syscall = syscall_of(task);
	w->state = SAMPLE_IN_SYSCALL;
	if (preempted || state == 0)
		w->state = SAMPLE_PREEMPTED;
	else if (state & (TASK_STOPPED | TASK_TRACED))
		w->state = SAMPLE_STOPPED;
	else if (w->syscall < 0)
		w->state = SAMPLE_IN_FAULT;
	/* A stop comes when the system call is over. */
	if (w->state == SAMPLE_STOPPED)
		w->syscall = NO_SYSCALL;
	w->out_ns = bpf_ktime_get_ns();
	leave_outside_of_syscall(ctx, w, tgid, tid);
}

/* Which fault a wait is of, minor ones wait too, the instruction tells. */
static __always_inline void wait_in_fault(struct task_struct *task, struct wait *w, __u64 waited)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	__u64 ip = REG_PC(regs);

	if (ip != w->fault_ip)
		w->fault_ns = 0;
	w->fault_ip = ip;
	w->fault_ns += waited;
}

static __always_inline bool is_target(__u32 tgid)
{
	return bpf_map_lookup_elem(&targets, &tgid) != 0;
}

static __always_inline void enter_cpu(struct task_struct *task)
{
	__u32 tid = task->pid;
	struct wait *w = bpf_map_lookup_elem(&waits, &tid);
	__u64 now, waited, ready = 0;

	if (!w || !w->out_ns)
		return;
	now = bpf_ktime_get_ns();
	waited = now - w->out_ns;
	if (w->state == SAMPLE_PREEMPTED)
		ready = waited;
	else if (w->woken_ns)
		ready = now - w->woken_ns;
	if (take_io && w->state == SAMPLE_IN_FAULT)
		wait_in_fault(task, w, waited);
	if (w->state == SAMPLE_IN_SYSCALL) {
		if (!w->waited_ns)
			w->first_ns = w->out_ns;
		w->waited_ns += waited;
		w->ready_ns += ready;
	} else if (waited >= wait_threshold_ns && recording && is_target(task->tgid)) {
		struct sample_record r = {
			.state = w->state,
			.ts_ns = w->out_ns,
			.weight_ns = waited,
			.ready_ns = ready,
			.stack_id = w->stack_id,
			.span_id = w->span_id,
			.tgid = task->tgid,
			.tid = tid,
			.syscall = w->syscall,
			.waker = w->waker,
			.holds_gil = PYTHON_NOT_KNOWN,
			.in_gc = PYTHON_NOT_KNOWN,
		};

		if (w->stack_id) {
			r.holds_gil = w->holds_gil;
			r.in_gc = w->in_gc;
		} else if (w->state == SAMPLE_PREEMPTED) {
			lose(LOSS_PREEMPTED_STACK);
		}
		emit_sample(&r);
	}
	w->out_ns = 0;
}

/* What the programs have looked at that concerned a target: what they cost the job goes by it. */
enum watched {
	WATCHED_SWITCHES,
	WATCHED_WAKINGS,
	WATCHED_CALLS,
	WATCHED_KINDS,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, WATCHED_KINDS);
} watched SEC(".maps");

static __always_inline void watch(__u32 kind)
{
	__u64 *n = bpf_map_lookup_elem(&watched, &kind);

	if (n)
		*n += 1;
}

/*
 * TP_PROTO(bool preempt, struct task_struct *prev, struct task_struct *next, ...). Every
 * switch of the machine comes here: what concerns no target leaves at once. Whether a
 * process is one is looked up when a thread's first wait gets a place, and not at each.
 */
SEC("tp_btf/sched_switch")
int sample_switch(__u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];

	if (maybe_target(prev->tgid)) {
		watch(WATCHED_SWITCHES);
		if (prev->__state & TASK_DEAD)
			end_waits(prev->tgid, prev->pid);
		else
			leave_cpu(ctx, prev, ctx[0]);
	}
	if (maybe_target(next->tgid))
		enter_cpu(next);
	return 0;
}

struct waker_stack {
	__u64 frame[MAX_KERNEL_FRAMES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct waker_stack);
	__uint(max_entries, 1);
} waker_stacks SEC(".maps");

/* Whether an interrupt is being served: the kernel's count that says so is out
 * of reach, but the interrupt's entry is on the stack. */
static __noinline bool in_interrupt(void *ctx)
{
	__u32 zero = 0;
	struct waker_stack *w = bpf_map_lookup_elem(&waker_stacks, &zero);
	long bytes;

	if (!w || !interrupt_text_end)
		return true;
	bytes = bpf_get_stack(ctx, w, sizeof(*w), 0);
	for (int i = 0; i < MAX_KERNEL_FRAMES; i++) {
		if (i * 8 >= bytes)
			break;
		if (w->frame[i] >= interrupt_text_start && w->frame[i] < interrupt_text_end)
			return true;
	}
	return bytes <= 0;
}

/* TP_PROTO(struct task_struct *p). An interrupt comes to whichever thread is
 * running: that one has not ended the wait. */
SEC("tp_btf/sched_waking")
int sample_waking(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	__u32 tid = task->pid;
	struct wait *w;
	__u64 now;

	if (!maybe_target(task->tgid))
		return 0;
	watch(WATCHED_WAKINGS);
	w = bpf_map_lookup_elem(&waits, &tid);
	if (!w || !w->out_ns)
		return 0;
	now = bpf_ktime_get_ns();
	w->waker = 0;
	w->woken_ns = now;
	if (now - w->out_ns + w->waited_ns < wait_threshold_ns)
		return 0;
	tid = bpf_get_current_pid_tgid();
	if (tid && !in_interrupt(ctx))
		w->waker = tid;
	return 0;
}

/* A function of its own, for the stack: the record is not on it while the walkers are. */
static __noinline int emit_wait(struct wait *wait, struct stack_workspace *w, __u64 stack_id)
{
	__u64 ids = bpf_get_current_pid_tgid();
	struct sample_record r = {
		.state = SAMPLE_IN_SYSCALL,
		.tgid = ids >> 32,
		.tid = ids,
		.stack_id = stack_id,
		.ts_ns = wait->first_ns,
		.weight_ns = wait->waited_ns,
		.ready_ns = wait->ready_ns,
		.syscall = wait->syscall,
		.waker = wait->waker,
		.holds_gil = w->python.holds_gil,
		.in_gc = w->python.in_gc,
	};

	r.span_id = span_at(r.tid, r.tgid, w->start.sp);
	emit_sample(&r);
	return 0;
}

static __noinline int end_of_wait(struct wait *wait)
{
	struct stack_cache *cache = stack_cache(WORKSPACE_TASK);
	struct stack_workspace *w = cache ? begin_stack(WORKSPACE_TASK) : 0;

	if (!w)
		return 0;
	start_at_kernel_entry(&w->start);
	emit_wait(wait, w, sample_stack(w, cache));
	end_stack(w);
	return 0;
}

/* TP_PROTO(struct pt_regs *regs, long id) */
SEC("tp_btf/sys_enter")
int io_begin(__u64 *ctx)
{
	begin_io((void *)ctx[0], ctx[1]);
	return 0;
}

/* Whether waits are seen at all; without them the verifier takes their code out. */
const volatile __u32 take_waits = 1;

/* TP_PROTO(struct pt_regs *regs, long ret). Preemptible since 6.13. */
SEC("tp_btf/sys_exit")
int sample_syscall_end(__u64 *ctx)
{
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 tgid = ids >> 32, tid = ids;
	struct wait *w;

	if (!maybe_target(tgid))
		return 0;
	watch(WATCHED_CALLS);
	w = take_waits ? bpf_map_lookup_elem(&waits, &tid) : 0;
	if (take_io) {
		struct io_ending e = {
			.number = syscall_number((void *)ctx[0]),
			.result = ctx[1],
			.waited = w ? w->waited_ns : 0,
			.tid = tid,
		};

		end_io(&e);
	}
	if (HAVE_FIND_VMA && syscall_number((void *)ctx[0]) == NR_MMAP && (__s64)ctx[1] > 0)
		GUARDED(see_mapping((void *)ctx[0], ctx[1]));
	if (!w || !w->waited_ns)
		return 0;
	if (w->waited_ns >= wait_threshold_ns && recording && is_target(tgid))
		GUARDED(end_of_wait(w));
	w->waited_ns = 0;
	w->ready_ns = 0;
	return 0;
}

/* Of each CPU an event of the kernel's software, at each major fault: the thread's own. */
SEC("perf_event")
int io_fault(struct bpf_perf_event_data *ctx)
{
	__u64 ids = bpf_get_current_pid_tgid(), waited = 0;
	__u32 tgid = ids >> 32, tid = ids;
	struct wait *w;

	if (!maybe_target(tgid) || !recording || !bpf_map_lookup_elem(&targets, &tgid))
		return 0;
	w = take_waits ? bpf_map_lookup_elem(&waits, &tid) : 0;
	if (w) {
		if (w->fault_ip == REG_PC(&ctx->regs))
			waited = w->fault_ns;
		w->fault_ns = 0;
	}
	count_fault(ctx->addr, waited);
	return 0;
}

/* Keeps the wire types that no map holds in the BTF, where bpf2go finds them. */
#define WIRE_TYPE(type, name) const type *wire_##name __attribute__((unused))
WIRE_TYPE(enum sample_state, sample_state);
WIRE_TYPE(enum native_outcome, native_outcome);
WIRE_TYPE(enum native_flag, native_flag);
WIRE_TYPE(enum python_outcome, python_outcome);
WIRE_TYPE(struct sample_record, sample_record);
WIRE_TYPE(enum io_event, io_event);
WIRE_TYPE(struct io_record, io_record);
WIRE_TYPE(struct io_call_record, io_call_record);
WIRE_TYPE(struct io_path_record, io_path_record);
WIRE_TYPE(struct stack_record, stack_record);
WIRE_TYPE(struct native_frame, native_frame);
WIRE_TYPE(struct python_frame, python_frame);
WIRE_TYPE(struct python_segment, python_segment);
