//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The generic call probe: one entry and one end program serve every probed
 * function of every library. The attach cookie names the probe spec (low 31
 * bits), the turn of its link (one bit) and how far below its value at the
 * function's first instruction the stack pointer is at the site (next 31 bits);
 * bit 63 says that this is not known.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "guard.h"
#include "regs.h"
#include "memo_learn.h"
#include "line.h"
#include "capture.h"
#include "tensors.h"
#include "scope.h"
#include "lives.h"
#include "text.h"
#include "young.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define COOKIE_SPEC(cookie) ((__u32)(cookie) & 0x7fffffff)
#define COOKIE_TURN(cookie) ((__u32)(cookie) >> 31)
#define COOKIE_DISPLACEMENT(cookie) ((__u32)((cookie) >> 32) & 0x7fffffff)
#define COOKIE_UNKNOWN(cookie) ((cookie) >> 63)	/* of an exit: its displacement */
#define COOKIE_CLOCK(cookie) ((cookie) >> 63)	/* of an entry: it ends something, and reads the clock first */

static __always_inline bool traced(__u32 tgid)
{
	if (bpf_map_lookup_elem(&targets, &tgid) || take_up(tgid))
		return true;
	lose(LOSS_FOREIGN_HIT);
	return false;
}

static __noinline struct thread_state *new_thread(__u32 tgid, __u32 tid)
{
	__u32 zero = 0, user = current_user();
	struct thread_state *blank = bpf_map_lookup_elem(&blank_thread, &zero);
	struct thread_state *t;

	if (!blank || !thread_allowed(tgid, user))
		return 0;
	if (!bpf_map_update_elem(&threads, &tid, blank, BPF_NOEXIST))
		count_thread(tgid, user);
	t = bpf_map_lookup_elem(&threads, &tid);
	if (!t) {
		refuse(user, tgid, SHARE_THREADS, LOSS_THREAD_TABLE_FULL);
		return 0;
	}
	t->tgid = tgid;
	t->user = user;
	/* 2^23 threads of 2^40 spans: positive as a BIGINT for ever. */
	t->next_span = (__sync_fetch_and_add(&threads_seen, 1) + 1) << 40;
	emit_life(RECORD_THREAD, (struct task_struct *)bpf_get_current_task(), 0, 0);
	return t;
}

/*
 * The innermost open call or scope: what happens now happens inside it. Sets the line
 * that it inherits, 0 where it does not.
 */
static __always_inline __u64 innermost(struct thread_state *t, __u64 *line)
{
	__u64 id = 0, start = 0;
	__u32 depth = t->depth, scopes = t->scopes;

	if (depth > 0 && depth <= MAX_DEPTH) {
		struct frame *f = &t->frame[(depth - 1) & (MAX_DEPTH - 1)];

		/* What a slice left open may have ended long ago. */
		if (!stale(f->flags, f->epoch)) {
			id = f->span_id;
			start = f->start_ns;
			*line = inherited_line(f);
		}
	}
	if (scopes > 0 && scopes <= MAX_SCOPES) {
		struct open_scope *s = &t->scope[(scopes - 1) & (MAX_SCOPES - 1)];

		/* Those around it are older, and so as stale. */
		if (stale(s->flags, s->epoch))
			t->scopes = 0;
		else if (s->start_ns >= start)
			id = s->span_id;
	}
	return id;
}

/*
 * Reports whether the process is traced, and finds the thread's state, null
 * before its first call. A state exists for threads of traced processes only,
 * so one lookup answers both questions for nearly every hit.
 */
static __always_inline bool find_thread(__u32 tgid, __u32 tid, struct thread_state **t)
{
	*t = bpf_map_lookup_elem(&threads, &tid);
	if (*t && (*t)->tgid == tgid)
		return true;
	if (!traced(tgid))
		return false;
	if (*t)
		(*t)->tgid = tgid; /* the number of a thread whose end went unseen */
	return true;
}

static __noinline int emit_event(struct frame *f, struct ending *e)
{
	__u64 wakeup = f->scope ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;

	if (f->args <= FEW_ARGS) {
		struct call_record_few *r = bpf_ringbuf_reserve(&calls, sizeof(*r), 0);

		if (!r)
			goto lost;
		fill_call(&r->call, f, e);
		r->call.kind = RECORD_EVENT;
		r->ret = 0;
		__builtin_memcpy(r->arg, f->arg, sizeof(r->arg));
		bpf_ringbuf_submit(r, wakeup);
	} else {
		struct call_record_full *r = bpf_ringbuf_reserve(&calls, sizeof(*r), 0);

		if (!r)
			goto lost;
		fill_call(&r->call, f, e);
		r->call.kind = RECORD_EVENT;
		r->ret = 0;
		__builtin_memcpy(r->arg, f->arg, sizeof(r->arg));
		bpf_ringbuf_submit(r, wakeup);
	}
	return 0;
lost:
	lose_call(f->spec);
	return 0;
}

/*
 * Where a hit's values go: the next frame of the thread's open calls, or the
 * one behind them for what is no call. Without a branch: the verifier would follow
 * all that comes with the one and with the other.
 */
static __always_inline struct frame *frame_of(struct thread_state *t, __u8 action)
{
	__u64 call = same(action, ACTION_SPAN) | same(action, ACTION_SCOPE_BEGIN) | same(action, ACTION_TIMED), slot;

	OPAQUE(call);
	slot = MAX_DEPTH - call * (MAX_DEPTH - (__u64)t->depth);
	OPAQUE(slot);
	if (slot > MAX_DEPTH - call)
		return 0;
	OPAQUE(slot);
	if (slot > MAX_DEPTH)
		return 0;
	return &t->frame[slot];
}

/* The shapes of the call around what happens now. */
static __always_inline __u32 shapes_around(const struct thread_state *t, __u64 parent_id)
{
	__u32 depth = t->depth;
	const struct frame *f;

	if (depth == 0 || depth > MAX_DEPTH)
		return 0;
	f = &t->frame[(depth - 1) & (MAX_DEPTH - 1)];
	return f->span_id == parent_id ? f->shapes : 0;
}

static __always_inline void fill_frame(const struct probe_spec *spec, struct thread_state *t,
				       struct frame *f, __u64 sp)
{
	__u64 line = 0;

	f->parent_id = innermost(t, &line);
	f->line = line;
	f->sp = sp;
	f->span_id = 0;
	f->sequence = ~0ULL;
	f->epoch = epoch;
	f->flags = spec->flags;
	f->scope = spec->action == ACTION_SCOPE_BEGIN || spec->action == ACTION_URGENT;
	f->args = spec->captures;
	f->faults = 0;
	f->shapes = 0;
	f->shapes_around = shapes_around(t, f->parent_id);
}

/* Whether end_calls finds something: seldom, so the clock is not read for it. */
static __always_inline bool calls_ended(const struct thread_state *t, __u64 limit)
{
	__u32 depth = t->depth;

	return depth > 0 && depth <= MAX_DEPTH && ended(&t->frame[(depth - 1) & (MAX_DEPTH - 1)], limit);
}

/*
 * An instant that ends what a mark began: the same function called both, from one
 * frame. Exceptions leave marks behind, which the next one overwrites.
 */
static __always_inline void since_mark(struct thread_state *t, struct frame *f, struct ending *e)
{
	bool its_own = t->mark_ns && t->mark_sp == f->sp && t->mark_epoch == f->epoch;

	e->end_ns = t->mark_end_ns;
	f->start_ns = its_own ? t->mark_ns : e->end_ns;
	t->mark_ns = 0;
}

/* What a hit is, its values captured. */
static __always_inline void act(struct pt_regs *ctx, const struct probe_spec *spec,
				struct thread_state *t, struct frame *f, struct ending *e)
{
	__u64 sequence;
	__u32 depth = t->depth;

	switch (spec->action) {
	case ACTION_SPAN:
	case ACTION_SCOPE_BEGIN:
		f->span_id = ++t->next_span;
		if (!(spec->flags & SPEC_DETAIL))
			step_ns = f->start_ns;
		if (spec->text && !(spec->flags & SPEC_TEXT_AT_RETURN))
			open_text(ctx, spec, f);
		t->depth = depth + 1;
		break;
	case ACTION_TIMED:
		f->span_id = f->parent_id;
		t->depth = depth + 1;
		break;
	case ACTION_INSTANT:
		f->span_id = ++t->next_span;
		if (spec->text)
			open_text(ctx, spec, f);
		/* fall through */
	case ACTION_URGENT:
	case ACTION_EVENT:
		e->method = END_RETURN;
		e->status = STATUS_ABSENT;
		emit_event(f, e);
		break;
	case ACTION_SEQUENCE:
		if (f->faults)
			break;
		sequence = sequence_of(f->arg[0], f->arg[1]);
		if (depth > 0 && depth <= MAX_DEPTH)
			t->frame[(depth - 1) & (MAX_DEPTH - 1)].sequence = sequence;
		keep_forward_line(e->tgid, sequence, f->line);
		break;
	case ACTION_PYTHON:
		if (depth > 0 && depth <= MAX_DEPTH)
			t->frame[(depth - 1) & (MAX_DEPTH - 1)].flags |= SPEC_PYTHON;
		break;
	case ACTION_MARK:
		t->mark_ns = f->start_ns;
		t->mark_sp = f->sp;
		t->mark_epoch = f->epoch;
		break;
	case ACTION_SCOPE_END:
		/* What is not followed as a pointer lies at an offset from the key. */
		end_scope(t, f->arg[0] + (spec->capture[0].derefs ? 0 : spec->capture[0].offset[0]), e);
		break;
	}
}

/* In the middle of taking a call's stack. */
struct taking {
	struct stack_workspace *stack;	/* null: it is not taken */
	struct memo_workspace *memo;
	const __u64 *memory;	/* of the stack, from the function's stack pointer on; null: it was not read */
};

/* Begins with a guess: what is read of the stack to prove it may be of use before. */
static __always_inline struct taking begin_taking(struct pt_regs *ctx, const struct probe_spec *spec,
						  struct thread_state *t, struct frame *f, __u32 tid)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct taking taking = {};
	struct stack_workspace *w;
	struct memo_workspace *m;

	if (!(spec->flags & SPEC_STACK) || spec->captures >= MAX_ARGS)
		return taking;
	m = bpf_map_lookup_elem(&memo_workspaces, &cpu);
	if (!m)
		return taking;
	w = begin_stack(WORKSPACE_TASK);
	if (!w)
		return taking;
	start_at_registers(&w->start, ctx);
	w->start.at_entry = f->sp == w->start.sp;
	w->start.tid = tid;
	w->of_call = 1;
	m->counts = 0;
	m->spec = f->spec;
	m->last = t->stack_before;
	memo_guess(m, &w->start);
	taking.stack = w;
	taking.memo = m;
	if (w->start.at_entry && m->stack_bytes >= STACK_VALUES_BYTES)
		taking.memory = (const __u64 *)m->memory;
	return taking;
}

/*
 * Takes the stack of a call that begins, which is one value more than its captures:
 * finds one that was walked before, or walks. Reports whether it did, and then
 * read the clock.
 */
static __always_inline bool add_stack(struct taking *taking, const struct probe_spec *spec,
				      struct thread_state *t, struct frame *f)
{
	struct stack_workspace *w = taking->stack;
	struct memo_workspace *m = taking->memo;
	/* Read again: what the verifier knows of them by now would be so many states. */
	__u32 n = *(volatile const __u8 *)&spec->captures, flags = *(volatile const __u16 *)&spec->flags;

	f->stack_id = 0;
	if (w && m) {
		m->hint = flags & SPEC_STACK_BY_VALUE ? f->arg[0] : 0;
		memo_find(m, &w->start);
		m->now_ns = bpf_ktime_get_ns();
		if (memo_found(m)) {
			f->stack_id = m->id;
		} else {
			f->stack_id = take_stack(w, 0);
			memo_walked(w, m, f->stack_id);
			m->now_ns = bpf_ktime_get_ns();
		}
		f->start_ns = m->now_ns;
		memo_follows(m);
		t->stack_before = m->found;
		end_stack(w);
		if (!f->line)
			f->line = line_of(f->stack_id, LINE_OWN);
	}
	if ((flags & SPEC_STACK) && n < MAX_ARGS) {
		f->arg[n] = f->stack_id;
		f->args = n + 1;
	}
	return w;
}

/* What a program takes of the stack. */
enum takes {
	TAKES_NOTHING,
	TAKES_LINE,
	TAKES_STACK,
};

/* One text for three programs: only those which take stacks pay for being able to. */
static __always_inline int enter_call(struct pt_regs *ctx, enum takes takes)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 index = COOKIE_SPEC(cookie), tgid = ids >> 32, tid = ids;
	__u64 sp = REG_SP(ctx) + COOKIE_DISPLACEMENT(cookie), limit;
	struct ending e = { .tgid = tgid, .tid = tid };
	struct taking taking = {};
	struct probe_count *count;
	struct probe_spec *spec;
	struct thread_state *t;
	struct frame *f;

	/* What is behind it is over by now, and what it reads from here on may be in no cache. */
	if (COOKIE_CLOCK(cookie))
		e.end_ns = bpf_ktime_get_ns();
	if (!find_thread(tgid, tid, &t))
		return 0;
	spec = bpf_map_lookup_elem(&probe_specs, &index);
	count = bpf_map_lookup_elem(&probe_counts, &index);
	if (!spec || !count || COOKIE_TURN(cookie) != spec->turn)
		return 0;
	if (!recording || ((spec->flags & SPEC_DETAIL) && !detail_on)) {
		count->passed++;
		return 0;
	}
	count->entries++;
	if (!t)
		t = new_thread(tgid, tid);
	if (!t) {
		count->lost++;
		return 0;
	}
	/* The ending is of other calls from here on. An instant is no call: what is open at its stack pointer goes on. */
	if (spec->flags & SPEC_SINCE_MARK)
		t->mark_end_ns = e.end_ns;
	limit = sp - same(spec->action, ACTION_INSTANT);
	if (calls_ended(t, limit)) {
		e.end_ns = bpf_ktime_get_ns();
		end_calls(t, limit, &e);
	}
	f = frame_of(t, spec->action);
	if (!f) {
		lose(LOSS_STACK_DEPTH);
		count->lost++;
		return 0;
	}
	fill_frame(spec, t, f, sp);
	f->spec = index;
	/* Before the stack: the verifier follows it once, and not with and without what that reads. */
	if (spec->captures && !(spec->flags & SPEC_IN_ORDER))
		capture_each(ctx, spec, f);
	if (spec->tensors) {
		t->tensors.tid = tid;
		take_tensors(ctx, spec, t, f, count->entries - 1);
	}
	if (takes == TAKES_STACK)
		taking = begin_taking(ctx, spec, t, f, tid);
	if (spec->flags & SPEC_IN_ORDER)
		capture_in_order(ctx, spec, f, taking.memory);
	/* What we did so far is not part of the call. */
	if (takes == TAKES_LINE)
		add_line(ctx, spec, t, f, tgid, tid);
	if (takes != TAKES_STACK || !add_stack(&taking, spec, t, f))
		f->start_ns = bpf_ktime_get_ns();
	e.end_ns = f->start_ns;
	if (spec->flags & SPEC_SINCE_MARK)
		since_mark(t, f, &e);
	act(ctx, spec, t, f, &e);
	return 0;
}

static __always_inline int enter(struct pt_regs *ctx)
{
	return enter_call(ctx, TAKES_NOTHING);
}

static __always_inline int enter_with_stack(struct pt_regs *ctx)
{
	return enter_call(ctx, TAKES_STACK);
}

static __always_inline int enter_with_line(struct pt_regs *ctx)
{
	return enter_call(ctx, TAKES_LINE);
}

static __always_inline int leave(struct pt_regs *ctx, __u64 cookie, __u64 sp, bool exact, __u8 method)
{
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 index = COOKIE_SPEC(cookie), tgid = ids >> 32, tid = ids;
	struct ending e = { .tgid = tgid, .tid = tid, .end_ns = bpf_ktime_get_ns() };
	struct probe_count *count;
	struct probe_spec *spec;
	struct thread_state *t;
	struct frame *f;

	if (!find_thread(tgid, tid, &t))
		return 0;
	spec = bpf_map_lookup_elem(&probe_specs, &index);
	count = bpf_map_lookup_elem(&probe_counts, &index);
	if (!spec || !count || COOKIE_TURN(cookie) != spec->turn)
		return 0;
	if (!t)
		goto unmatched;
	e.ret = REG_RET(ctx);
	if (t->depth == 0 || t->depth > MAX_DEPTH)
		goto unmatched;
	f = &t->frame[(t->depth - 1) & (MAX_DEPTH - 1)];
	/* Calls inside this one that are still open were left by an exception
	 * that this one caught. */
	if (f->sp < sp) {
		end_calls(t, sp - 1, &e);
		if (t->depth == 0 || t->depth > MAX_DEPTH)
			goto unmatched;
		f = &t->frame[(t->depth - 1) & (MAX_DEPTH - 1)];
	}
	if (f->spec != index || (exact && f->sp != sp))
		goto unmatched;
	count->exits++;
	if (f->flags & SPEC_OUT_ARGS)
		capture_out_args(spec, f);
	if (f->flags & SPEC_TEXT_AT_RETURN)
		close_text(spec, f);
	e.method = method;
	e.status = STATUS_OK;
	t->depth--;
	if (f->scope)
		begin_scope(t, f, &e);
	else
		send_span(f, &e);
	return 0;
unmatched:
	/* It began before the probes were there, or outside of a slice. */
	count->passed++;
	if (recording && (detail_on || !(spec->flags & SPEC_DETAIL)))
		lose(LOSS_UNMATCHED_EXIT);
	return 0;
}

static __always_inline int leave_site(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);

	return leave(ctx, cookie, REG_SP(ctx) + COOKIE_DISPLACEMENT(cookie), !COOKIE_UNKNOWN(cookie),
		     END_EXIT_SITE);
}

static __always_inline int leave_return(struct pt_regs *ctx)
{
	return leave(ctx, bpf_get_attach_cookie(ctx), REG_SP(ctx) - RETURN_POP, true, END_RETURN);
}

static __always_inline int count_hit(struct pt_regs *ctx)
{
	__u32 index = COOKIE_SPEC(bpf_get_attach_cookie(ctx));
	struct probe_count *count;

	if (!traced(bpf_get_current_pid_tgid() >> 32))
		return 0;
	count = bpf_map_lookup_elem(&probe_counts, &index);
	if (count)
		count->entries++;
	return 0;
}

static __always_inline int link_map_changed(void)
{
	__u64 ids = bpf_get_current_pid_tgid();

	if (traced(ids >> 32))
		emit_life(RECORD_LINK_MAP, (struct task_struct *)bpf_get_current_task(), 0, 0);
	return 0;
}

SEC("uprobe.multi")
int call_entry(struct pt_regs *ctx)
{
	return GUARDED(enter(ctx));
}

/* For those whose spec asks for the Python code behind them. */
SEC("uprobe.multi")
int call_entry_line(struct pt_regs *ctx)
{
	return GUARDED(enter_with_line(ctx));
}

/* For those whose spec asks for a stack. */
SEC("uprobe.multi")
int call_entry_stack(struct pt_regs *ctx)
{
	return GUARDED(enter_with_stack(ctx));
}

SEC("uprobe.multi")
int call_exit(struct pt_regs *ctx)
{
	return GUARDED(leave_site(ctx));
}

SEC("uretprobe.multi")
int call_return(struct pt_regs *ctx)
{
	return GUARDED(leave_return(ctx));
}

/* Learns which functions a job uses, at a price below call_entry's. */
SEC("uprobe.multi")
int call_learn(struct pt_regs *ctx)
{
	return GUARDED(count_hit(ctx));
}

/* On _dl_debug_state, which the dynamic linker calls around every dlopen. */
SEC("uprobe.multi")
int link_map(struct pt_regs *ctx)
{
	return GUARDED(link_map_changed());
}

/* Keeps the wire types that no map holds in the BTF, where bpf2go finds them. */
#define WIRE_TYPE(type, name) const type *wire_##name __attribute__((unused))
WIRE_TYPE(enum action, action);
WIRE_TYPE(enum source, source);
WIRE_TYPE(enum text_kind, text_kind);
WIRE_TYPE(enum tensor_argument, tensor_argument);
WIRE_TYPE(enum tensor_outcome, tensor_outcome);
WIRE_TYPE(struct tensors_record, tensors_record);
WIRE_TYPE(enum spec_flag, spec_flag);
WIRE_TYPE(enum line_source, line_source);
WIRE_TYPE(enum record_kind, record_kind);
WIRE_TYPE(enum end_method, end_method);
WIRE_TYPE(enum call_status, call_status);
WIRE_TYPE(enum loss, loss);
WIRE_TYPE(enum share, share);
WIRE_TYPE(struct call_record, call_record);
WIRE_TYPE(struct call_record_few, call_record_few);
WIRE_TYPE(struct call_record_full, call_record_full);
WIRE_TYPE(struct text_record, text_record);
WIRE_TYPE(struct long_text_record, long_text_record);
WIRE_TYPE(enum capture_flag, capture_flag);
WIRE_TYPE(enum memo_count, memo_count);
WIRE_TYPE(struct life_record, life_record);
