/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The Python line behind every call. The outermost call of a thread has its Python
 * frames walked, or recognised (memo.h); what happens in it inherits the id of that
 * stack. A backward node has that of the operator that it differentiates, by the
 * sequence number: when it runs, Python stands in backward(), or nowhere.
 */
#ifndef EBPFPROF_LINE_H
#define EBPFPROF_LINE_H

#include "memo_learn.h"

#define LINE_SOURCE 3ULL	/* the bits of a line that are no id: enum line_source */

_Static_assert(LINE_SOURCES <= 1 << STACK_FREE_BITS, "ids leave room for them");

static __always_inline __u64 line_of(__u64 id, __u64 source)
{
	return (id & ~LINE_SOURCE) | source;
}

/* The line of a call in another: 0 if it is to find one of its own. */
static __always_inline __u64 inherited_line(const struct frame *around)
{
	return around->line && !(around->flags & SPEC_PYTHON) ? line_of(around->line, LINE_INHERITED) : 0;
}

#define FORWARD_LINES (1 << 16)	/* operators between forward and backward */

/* Two processors may write one place: what is half of each is neither's. */
struct forward_line {
	__u64 id;
	__u64 check;
};

/* The lines of operators that will be differentiated, by where their number says. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct forward_line);
	__uint(max_entries, FORWARD_LINES);
} forward_lines SEC(".maps");

/* A record's sequence of a number and the thread that it is of. */
static __always_inline __u64 sequence_of(__u64 number, __u64 thread)
{
	return (number & ((1ULL << SEQUENCE_BITS) - 1)) | (thread << SEQUENCE_BITS & ~(1ULL << 63));
}

/* Each thread counts up: neighbours in time are neighbours here, and none is in another's way. */
static __always_inline struct forward_line *forward_line(__u32 tgid, __u64 sequence)
{
	__u32 place = (sequence + (sequence >> SEQUENCE_BITS) * 40503 + (__u64)tgid * 7919) & (FORWARD_LINES - 1);

	return bpf_map_lookup_elem(&forward_lines, &place);
}

static __always_inline __u64 forward_check(__u32 tgid, __u64 sequence, __u64 id)
{
	return mix(sequence, tgid) ^ id;
}

static __always_inline void keep_forward_line(__u32 tgid, __u64 sequence, __u64 line)
{
	struct forward_line *f = forward_line(tgid, sequence);
	__u64 id = line & ~LINE_SOURCE;

	if (!f || !id)
		return;
	f->id = id;
	f->check = forward_check(tgid, sequence, id);
}

/* The line of the operator that a backward node differentiates, 0 if it is not there. */
static __always_inline __u64 line_of_forward(__u32 tgid, __u64 sequence)
{
	const struct forward_line *f = forward_line(tgid, sequence);
	__u64 id;

	if (!f)
		return 0;
	id = *(volatile __u64 *)&f->id;
	return id && *(volatile __u64 *)&f->check == forward_check(tgid, sequence, id) ? line_of(id, LINE_FORWARD) : 0;
}

/*
 * Finds the line of an outermost call: one that was walked before, or walks. What
 * is found goes into the frame, for the verifier.
 */
static __always_inline void own_line(struct pt_regs *ctx, struct thread_state *t, struct frame *f, __u32 tid)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct memo_workspace *m = bpf_map_lookup_elem(&memo_workspaces, &cpu);
	struct stack_workspace *w;
	__u64 id;

	if (!m)
		return;
	w = begin_stack(WORKSPACE_TASK);
	if (!w)
		return;
	start_at_registers(&w->start, ctx);
	w->start.sp = f->sp;
	w->start.at_entry = 0;
	w->start.tid = tid;
	m->spec = f->spec;
	m->hint = 0;
	m->counts = MEMO_LINES;
	m->last = t->line_before;
	memo_guess(m, &w->start);
	memo_find(m, &w->start);
	m->now_ns = bpf_ktime_get_ns();
	if (memo_found(m)) {
		id = m->id;
	} else {
		id = take_python_stack(w);
		if (id)
			memo_walked(w, m, id);
	}
	f->line = line_of(id, LINE_OWN);
	memo_follows(m);
	t->line_before = m->found;
	end_stack(w);
}

/* Gives a call its line, if it has not inherited one. */
static __always_inline void add_line(struct pt_regs *ctx, const struct probe_spec *spec, struct thread_state *t,
				     struct frame *f, __u32 tgid, __u32 tid)
{
	__u64 forward = 0;

	if (spec->flags & SPEC_BACKWARD)
		forward = line_of_forward(tgid, sequence_of(f->arg[1], f->arg[2]));
	if (forward)
		f->line = forward;
	if (!*(volatile __u64 *)&f->line)
		own_line(ctx, t, f, tid);
}

#endif
