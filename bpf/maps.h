/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The maps that the call probes and the life probes share. */
#ifndef EBPFPROF_MAPS_H
#define EBPFPROF_MAPS_H

#include <bpf/bpf_core_read.h>
#include "wire.h"
#include "verified.h"

/* A call that was entered and has not been seen to end. */
struct frame {
	__u64 sp;	/* at the function's first instruction */
	__u64 start_ns;
	__u64 span_id;
	__u64 parent_id;
	__u64 sequence;
	__u32 spec;
	__u32 epoch;
	__u16 flags;	/* enum spec_flag */
	__u8 args;
	__u8 scope;	/* a scope's; of an instant: the reader is woken for it */
	__u32 faults;
	__u64 arg[MAX_ARGS];
	__u64 stack_id;	/* with SPEC_STACK */
	__u64 line;	/* as in call_record */
	__u32 shapes;
	__u32 shapes_around;
};

/* Shapes that user space has been told of. */
struct told_shapes {
	__u64 hash;	/* of the recording's epoch, the function and all that was read */
	__u64 number;
};

struct open_scope {
	__u64 span_id;
	__u64 start_ns;
	__u32 epoch;
	__u16 flags;	/* enum spec_flag */
	__u16 pad;
};

/*
 * What is open on one thread. Calls are ordered by stack pointer: the stack
 * grows down, so a call whose stack pointer is at or below the present one has
 * ended, whether or not its end was seen.
 */
struct thread_state {
	__u64 next_span;
	__u32 depth;
	__u32 scopes;
	__u32 tgid;
	__u32 stack_before;	/* which memoised stack was taken last (memo.h) */
	__u32 line_before;	/* likewise, of Python frames alone */
	__u32 mark_epoch;
	__u32 user;	/* to whom the entry is charged */
	__u32 pad;
	__u64 mark_ns;	/* when the last ACTION_MARK began, 0: what it began has ended */
	__u64 mark_sp;
	__u64 mark_end_ns;	/* and when what may be its end was seen */
	struct open_scope scope[MAX_SCOPES];
	/* One more than can be open, for what is no call: captured values are not on
	 * the BPF stack, where each would be a state for the verifier. */
	struct frame frame[MAX_DEPTH + 1];
	/* Of one thread, not of one processor: below 6.10 another could run in between. */
	struct tensors_record tensors;
	__u64 shapes_hash;
	__u32 shapes_others;	/* not 0: there are words that are not in the hash yet */
	__u32 shapes_checked;
	__u64 shapes_sent;
	struct told_shapes told[TOLD_SHAPES];
	__u64 words[TENSOR_WORDS];	/* of the arguments of the call that it is of */
};

struct scope_key {
	__u64 address;
	__u32 tgid;
	__u32 pad;
};

struct scope_value {
	__u64 span_id;
	__u64 parent_id;
	__u64 start_ns;
	__u32 tid;
	__u32 spec;
	__u32 epoch;
	__u16 flags;	/* enum spec_flag */
	__u16 pad;
	__u32 user;	/* to whom it is charged */
	__u32 unused;
	__u64 stack_id;	/* 0: none was taken */
	__u64 line;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct probe_spec);
	__uint(max_entries, 1);	/* sized by the loader */
} probe_specs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct probe_count);
	__uint(max_entries, 1);	/* sized by the loader */
} probe_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, LOSS_MAX);
} losses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, struct target);
	__uint(max_entries, 4096);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);	/* 18 KiB a thread, only for threads that have events */
	__type(key, __u32);
	__type(value, struct thread_state);
	__uint(max_entries, 16384);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct scope_key);
	__type(value, struct scope_value);
	__uint(max_entries, 4096);
} scopes SEC(".maps");

/* How many of those are a process's own. Apart from the targets: the loader writes it
 * anew when it takes scopes out whose end will not be seen (tracer/kernel/opencalls.go). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 4096);
} scope_counts SEC(".maps");

/* A new thread's state starts as a copy of this: too large for the BPF stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct thread_state);
	__uint(max_entries, 1);
} blank_thread SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);	/* sized by the loader */
} calls SEC(".maps");

/* Apart from the calls, so that a flood of them cannot hide a fork. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 262144);
} life SEC(".maps");

/* Raised by the loader when it takes probes out: what was open then has no
 * visible end. */
volatile __u32 epoch SEC(".data.shared") = 1;
/* What began before this epoch has no visible end either, if it is no detail:
 * the loader took even those probes out. */
volatile __u32 anchor_epoch SEC(".data.shared") = 0;
/* Whether probes of the detail groups record. Putting thousands of them in or
 * taking them out lasts many milliseconds; this makes all of them begin and end
 * at one moment. */
volatile __u32 detail_on SEC(".data.shared") = 1;
/* Whether anything begins: ended at one moment too, before the first probe goes. */
volatile __u32 recording SEC(".data.shared") = 1;
/* Whether a child is a target from its first moment: the job is a launcher's so far. */
volatile __u32 look_at_once SEC(".data.shared") = 1;
/* Whether user space looks for those that have grown old (young.h). */
volatile __u32 young_told SEC(".data.shared") = 0;
__u64 threads_seen SEC(".data.shared") = 0;
/* When a call began that a training step may begin with. */
volatile __u64 step_ns SEC(".data.shared") = 0;

/*
 * Whether a process may be a target, by the lowest bits of its number: what the programs
 * ask first that run for every process of the machine. Nothing is ever taken out: a number
 * that has been a target's costs those that have the same bits a look into the table.
 */
#define MAYBE_TARGETS (1 << 16)
volatile __u8 maybe_targets[MAYBE_TARGETS] SEC(".data.targets");

static __always_inline bool maybe_target(__u32 tgid)
{
	return maybe_targets[tgid & (MAYBE_TARGETS - 1)];
}

static __always_inline void note_target(__u32 tgid)
{
	maybe_targets[tgid & (MAYBE_TARGETS - 1)] = 1;
}

static __always_inline void lose(__u32 reason)
{
	__u64 *n = bpf_map_lookup_elem(&losses, &reason);

	if (n)
		__sync_fetch_and_add(n, 1);
}

/* In hundredths of a second, as user space knows it: nsec_to_clock_t, in units of the ABI. */
static __always_inline __u64 start_ticks(struct task_struct *task)
{
	return BPF_CORE_READ(task, start_boottime) / 10000000;
}

static __always_inline __u64 process_start_ticks(struct task_struct *task)
{
	return BPF_CORE_READ(task, group_leader, start_boottime) / 10000000;
}

static __always_inline void emit_life(__u8 kind, struct task_struct *task, __u32 parent, __s32 code)
{
	struct life_record *r = bpf_ringbuf_reserve(&life, sizeof(*r), 0);

	if (!r) {
		lose(LOSS_LIFE_RING_FULL);
		return;
	}
	__builtin_memset(r, 0, sizeof(*r));
	r->kind = kind;
	r->tgid = BPF_CORE_READ(task, tgid);
	r->tid = BPF_CORE_READ(task, pid);
	r->parent_tgid = parent;
	r->exit_code = code;
	r->ts_ns = bpf_ktime_get_ns();
	r->process_ticks = process_start_ticks(task);
	r->start_ticks = kind == RECORD_THREAD || kind == RECORD_THREAD_EXIT ? start_ticks(task) : r->process_ticks;
	bpf_get_current_comm(r->comm, sizeof(r->comm));
	bpf_ringbuf_submit(r, 0);
}

/* Whether the end of what began then can not have been seen. */
static __always_inline bool stale(__u16 flags, __u32 began)
{
	return began != epoch && ((flags & SPEC_DETAIL) || began < anchor_epoch);
}

/* How a call ended. */
struct ending {
	__u64 end_ns;
	__u64 ret;
	__u32 tgid;
	__u32 tid;
	__u8 method;
	__u8 status;
};

static __always_inline void fill_call(struct call_record *r, const struct frame *f,
				      const struct ending *e)
{
	r->kind = RECORD_SPAN;
	r->end = e->method;
	r->status = e->status;
	r->args = f->args;
	r->spec = f->spec;
	r->span_id = f->span_id;
	r->parent_id = f->parent_id;
	r->start_ns = f->start_ns;
	r->end_ns = e->end_ns;
	r->tgid = e->tgid;
	r->tid = e->tid;
	r->sequence = f->sequence;
	r->epoch = f->epoch;
	r->faults = f->faults;
	r->line = f->line;
	r->shapes = f->shapes;
	r->shapes_around = f->shapes_around;
}

static __always_inline void lose_call(__u32 spec)
{
	struct probe_count *c = bpf_map_lookup_elem(&probe_counts, &spec);

	if (c)
		c->lost++;
	lose(LOSS_RING_FULL);
}

static __always_inline int send_span(struct frame *f, struct ending *e)
{
	if (f->args == 0 && !(f->flags & SPEC_KEEP_RESULT)) {
		struct call_record *r = bpf_ringbuf_reserve(&calls, sizeof(*r), 0);

		if (!r)
			goto lost;
		fill_call(r, f, e);
		bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	} else if (f->args <= FEW_ARGS) {
		struct call_record_few *r = bpf_ringbuf_reserve(&calls, sizeof(*r), 0);

		if (!r)
			goto lost;
		fill_call(&r->call, f, e);
		r->ret = e->ret;
		__builtin_memcpy(r->arg, f->arg, sizeof(r->arg));
		bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	} else {
		struct call_record_full *r = bpf_ringbuf_reserve(&calls, sizeof(*r), 0);

		if (!r)
			goto lost;
		fill_call(&r->call, f, e);
		r->ret = e->ret;
		__builtin_memcpy(r->arg, f->arg, sizeof(r->arg));
		bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	}
	return 0;
lost:
	lose_call(f->spec);
	return 0;
}

VERIFIED_ONCE int emit_span(struct frame *f, struct ending *e)
{
	if (!f || !e)
		return 0;
	return send_span(f, e);
}

/* Whether the call is known to have ended when the stack pointer is at limit. */
static __always_inline bool ended(const struct frame *f, __u64 limit)
{
	/* If the return of one is still to come, it jumped to the function that is
	 * being entered, on the same stack (a tail call). */
	return f->sp < limit || (f->sp == limit && !(f->flags & SPEC_HAS_RETURN));
}

/* Ends the innermost call if the thread is no longer in it; whether it was. */
VERIFIED_ONCE int end_call(struct thread_state *t, __u64 limit, const struct ending *now)
{
	__u32 depth, method = END_NEXT_ENTRY, status;
	struct ending e;
	struct frame *f;

	if (!t || !now)
		return 0;
	depth = t->depth;
	if (depth == 0 || depth > MAX_DEPTH)
		return 0;
	f = &t->frame[(depth - 1) & (MAX_DEPTH - 1)];
	if (!ended(f, limit))
		return 0;
	e = *now;
	status = f->flags & SPEC_HAS_EXIT ? STATUS_THREW : STATUS_ABSENT;
	if (stale(f->flags, f->epoch)) {
		method = END_UNFINISHED;
		status = STATUS_ABSENT;
	}
	/* One state for the verifier, not one for each way to end. */
	barrier_var(method);
	barrier_var(status);
	e.method = method;
	e.status = status;
	emit_span(f, &e);
	t->depth = depth - 1;
	return 1;
}

struct endings {
	struct thread_state *thread;
	__u64 limit;
	const struct ending *now;
};

static long end_next(__u32 i, void *context)
{
	struct endings *e = context;
	int one = end_call(e->thread, e->limit, e->now);

	barrier_var(one);	/* the compiler knows that it is 0 or 1, the verifier does not */
	return one == 0;
}

/*
 * Ends every call whose stack pointer is at or below limit: the thread is no
 * longer in it. A call whose every return is probed was left by an exception;
 * any other ended somewhere before now.
 */
static __noinline __attribute__((unused)) int end_calls(struct thread_state *t, __u64 limit, const struct ending *now)
{
	struct endings endings = { .thread = t, .limit = limit, .now = now };

	if (HAVE_BPF_LOOP) {
		bpf_loop(MAX_DEPTH, end_next, &endings, 0);
	} else {
		for (int i = 0; i < MAX_DEPTH; i++)
			if (!end_call(t, limit, now))
				break;
	}
	return 0;
}

#endif
