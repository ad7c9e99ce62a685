/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Framework scopes: begun by one function, ended by another, on any thread. */
#ifndef EBPFPROF_SCOPE_H
#define EBPFPROF_SCOPE_H

#include "lives.h"
#include "regs.h"

static __always_inline void fill_scope(struct call_record *r, const struct scope_value *v,
				       const struct ending *e)
{
	r->kind = RECORD_SPAN;
	r->end = END_SCOPE;
	r->status = STATUS_OK;
	r->args = 0;
	r->spec = v->spec;
	r->span_id = v->span_id;
	r->parent_id = v->parent_id;
	r->start_ns = v->start_ns;
	r->end_ns = e->end_ns;
	r->tgid = e->tgid;
	r->tid = v->tid;
	r->sequence = ~0ULL;
	r->epoch = v->epoch;
	r->faults = 0;
	r->line = v->line;
}

/* Of a scope's values only its stack is of interest. */
static __noinline int emit_scope(const struct scope_value *v, const struct ending *e)
{
	if (v->stack_id) {
		struct call_record_few *r = bpf_ringbuf_reserve(&calls, sizeof(*r), 0);

		if (!r)
			return 1;
		fill_scope(&r->call, v, e);
		r->call.args = 1;
		r->ret = 0;
		r->arg[0] = v->stack_id;
		bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	} else {
		struct call_record *r = bpf_ringbuf_reserve(&calls, sizeof(*r), 0);

		if (!r)
			return 1;
		fill_scope(r, v, e);
		bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	}
	return 0;
}

/* A scope ends on whichever thread its owner lets go of it. */
static __noinline int end_scope(struct thread_state *t, __u64 address, struct ending *e)
{
	struct scope_key key = { .address = address, .tgid = e->tgid };
	struct scope_value *v = bpf_map_lookup_elem(&scopes, &key);
	__u32 user;

	if (!v)
		return 0;
	user = v->user;
	for (int i = 0; i < MAX_SCOPES; i++) {
		__u32 n = t->scopes;

		if (n == 0 || n > MAX_SCOPES)
			break;
		/* Whatever was opened after it and is still there ended with it. */
		if (t->scope[(n - 1) & (MAX_SCOPES - 1)].start_ns < v->start_ns)
			break;
		t->scopes = n - 1;
	}
	if (emit_scope(v, e))
		lose_call(v->spec);
	if (!bpf_map_delete_elem(&scopes, &key))
		forget_scope(e->tgid, user);
	return 0;
}

static __always_inline void count_lost(__u32 spec)
{
	struct probe_count *c = bpf_map_lookup_elem(&probe_counts, &spec);

	if (c)
		c->lost++;
}

static __noinline int begin_scope(struct thread_state *t, struct frame *f, struct ending *e)
{
	struct scope_key key = { .address = f->arg[0], .tgid = e->tgid };
	struct scope_value v = {
		.span_id = f->span_id,
		.parent_id = f->parent_id,
		.start_ns = f->start_ns,
		.tid = e->tid,
		.spec = f->spec,
		.epoch = f->epoch,
		.flags = f->flags,
		.stack_id = f->flags & SPEC_STACK ? f->stack_id : 0,
		.line = f->line,
		.user = t->user,
	};
	const struct scope_value *before = bpf_map_lookup_elem(&scopes, &key);
	__u32 n = t->scopes, user, *open;

	/* Another at the same address ended unseen: its memory is in use again. */
	if (before) {
		user = before->user;
		if (!bpf_map_delete_elem(&scopes, &key)) {
			forget_scope(e->tgid, user);
			count_lost(f->spec);
			lose(LOSS_SCOPE_LOST);
		}
	}
	open = open_scopes(e->tgid);
	if (!share_left(v.user, SHARE_SCOPES, USER_SCOPES) || (open && *open >= PROCESS_SCOPES)) {
		count_lost(f->spec);
		refuse(v.user, e->tgid, SHARE_SCOPES, LOSS_SCOPE_QUOTA);
		return 0;
	}
	if (!open || bpf_map_update_elem(&scopes, &key, &v, BPF_NOEXIST)) {
		count_lost(f->spec);
		refuse(v.user, e->tgid, SHARE_SCOPES, LOSS_SCOPE_LOST);
		return 0;
	}
	__sync_fetch_and_add(open, 1);
	take_share(v.user, SHARE_SCOPES);
	if (n >= MAX_SCOPES) {
		lose(LOSS_SCOPE_DEPTH);
	} else {
		t->scope[n & (MAX_SCOPES - 1)].span_id = f->span_id;
		t->scope[n & (MAX_SCOPES - 1)].start_ns = f->start_ns;
		t->scope[n & (MAX_SCOPES - 1)].epoch = f->epoch;
		t->scope[n & (MAX_SCOPES - 1)].flags = f->flags;
		t->scopes = n + 1;
	}
	return 0;
}

#endif
