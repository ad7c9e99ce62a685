/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Taking a call stack: both walks, the name of what they found, and its frames
 * on their way to the loader the first time in an epoch.
 */
#ifndef EBPFPROF_STACKS_H
#define EBPFPROF_STACKS_H

#include "maps.h"
#include "unwind.h"
#include "python_maps.h"
#include "thread.h"
#include "walk_start.h"
#include "stack_epoch.h"
#include "sample_ring.h"

/* Everything that the frames of one stack take at the most. */
#define STACK_DATA_BYTES (MAX_NATIVE_FRAMES * 16 + MAX_PYTHON_FRAMES * 16 + \
			  MAX_PYTHON_SEGMENTS * 16 + MAX_KERNEL_FRAMES * 8)

struct stack_workspace {
	__u32 busy;
	__u32 kernel_count;
	__u32 sent_in;	/* epoch in which the frames of the stack were sent; 0: they were not */
	__u32 of_call;	/* stack_record.of_call */
	struct walk_start start;
	struct native_scratch native_scratch;
	struct python_scratch python_scratch;
	struct native_stack native;
	struct python_stack python;
	__u64 kernel[MAX_KERNEL_FRAMES];
	struct stack_record record;
	union {
		struct python_memory python_memory;	/* until the frames are put together */
		__u8 data[STACK_DATA_BYTES];
	};
};

/* What stays of the stacks before, for those that come next. */
struct stack_cache {
	struct python_cache python;
	struct walk_cache native;
} __attribute__((aligned(64)));	/* the places of python are lines of the cache */

/* A sample may interrupt a probe in the middle of a walk. */
enum workspace {
	WORKSPACE_TASK,
	WORKSPACE_INTERRUPT,
	WORKSPACES,
};

/* A per-CPU map's values are 32 KiB at the most (PCPU_MIN_UNIT_SIZE). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct stack_workspace);
	__uint(max_entries, WORKSPACES);	/* for each CPU: sized by the loader */
} stack_workspaces SEC(".maps");

/*
 * The epoch in which a stack's frames were sent last (stack_sent). One word is
 * never half another's. Of two stacks for one place the frames are sent again:
 * the loader knows them.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 1 << STACKS_SEEN_BITS);
} stacks_seen SEC(".maps");

static __always_inline __u64 mix(__u64 sum, __u64 value)
{
	sum = (sum ^ value) * 0x9e3779b97f4a7c15ULL;
	return sum ^ sum >> 29;
}

VERIFIED_ONCE __u64 hash_native(const struct native_stack *s, __u64 sum)
{
	if (!s)
		return sum;
	for (__u32 i = 0; i < MAX_NATIVE_FRAMES; i++) {
		if (i >= s->count)
			break;
		sum = mix(sum, s->frame[i & (MAX_NATIVE_FRAMES - 1)].pc);
	}
	return mix(sum, s->outcome);
}

VERIFIED_ONCE __u64 hash_python(const struct python_stack *s, __u64 sum)
{
	if (!s)
		return sum;
	for (__u32 i = 0; i < MAX_PYTHON_FRAMES; i++) {
		const struct python_frame *f = &s->frame[i & (MAX_PYTHON_FRAMES - 1)];

		if (i >= s->count)
			break;
		sum = mix(sum, f->code);
		sum = mix(sum, (__u64)f->checksum << 32 | (__u32)f->instruction);
	}
	return mix(sum, s->outcome);
}

VERIFIED_ONCE __u64 hash_kernel(const struct stack_workspace *w, __u64 sum)
{
	if (!w)
		return sum;
	for (__u32 i = 0; i < MAX_KERNEL_FRAMES; i++) {
		if (i >= w->kernel_count)
			break;
		sum = mix(sum, w->kernel[i & (MAX_KERNEL_FRAMES - 1)]);
	}
	return sum;
}

/* Copies bytes of one kind of frame behind those before; returns where the next go. */
#define PACK(w, at, limit, from, bytes)					\
	({								\
		__u32 n_ = (bytes), at_ = (at);				\
									\
		if (n_ > sizeof(from) || at_ > (limit))			\
			return 1;					\
		bpf_probe_read_kernel(&(w)->data[at_], n_, &(from));	\
		at_ + n_;						\
	})

static __noinline int send_frames(struct stack_workspace *w, __u64 id)
{
	struct stack_record *r = &w->record;
	__u32 at = 0;

	r->kind = RECORD_STACK;
	r->python_outcome = w->python.outcome;
	r->native_outcome = w->native.outcome;
	r->kernel = w->kernel_count;
	r->native = w->native.count;
	r->python = w->python.count;
	r->segments = w->python.segments;
	r->of_call = w->of_call;
	r->tgid = w->start.tgid;
	r->id = id;
	r->sp = w->native.sp;
	at = PACK(w, at, 0, w->native.frame, w->native.count * 16);
	at = PACK(w, at, 8192, w->python.frame, w->python.count * 16);
	at = PACK(w, at, 12288, w->python.segment, w->python.segments * 16);
	at = PACK(w, at, 16384, w->kernel, w->kernel_count * 8);
	if (at > STACK_DATA_BYTES)
		return 1;
	return bpf_ringbuf_output(&samples, r, sizeof(*r) + at, BPF_RB_NO_WAKEUP);
}

_Static_assert(MAX_NATIVE_FRAMES * 16 == 8192 && MAX_PYTHON_FRAMES * 16 == 4096 &&
	       MAX_PYTHON_SEGMENTS * 16 == 4096, "send_frames knows where the kinds can begin");
_Static_assert(__builtin_offsetof(struct stack_workspace, data) ==
	       __builtin_offsetof(struct stack_workspace, record) + sizeof(struct stack_record),
	       "the frames follow the record");

/* Names the stack in the workspace and sends its frames if they are news. */
VERIFIED_ONCE __u64 name_stack(struct stack_workspace *w)
{
	__u64 id, *seen, sent;
	__u32 now, place;

	if (!w)
		return 0;
	id = stack_id(hash_kernel(w, hash_python(&w->python, hash_native(&w->native, w->start.tgid))));
	place = stack_place(id);
	seen = bpf_map_lookup_elem(&stacks_seen, &place);
	now = stack_epoch(id, bpf_ktime_get_ns());
	w->sent_in = now;
	sent = stack_sent(id, now);
	if (!seen || *seen == sent)
		return id;
	if (send_frames(w, id)) {
		w->sent_in = 0;
		lose(LOSS_STACK_RING_FULL);
	} else {
		*seen = sent;
	}
	return id;
}

/* The workspace of a context, null while a stack is being taken in it. */
static __always_inline struct stack_workspace *begin_stack(__u32 context)
{
	__u32 index = bpf_get_smp_processor_id() * WORKSPACES + context;
	struct stack_workspace *w = bpf_map_lookup_elem(&stack_workspaces, &index);

	if (!w)
		return 0;
	if (w->busy) {
		lose(LOSS_SAMPLE_BUSY);
		return 0;
	}
	w->busy = 1;
	w->kernel_count = 0;
	w->of_call = 0;
	return w;
}

static __always_inline void end_stack(struct stack_workspace *w)
{
	w->busy = 0;
}

/*
 * The innermost span that is open where the stack pointer is: calls at or below
 * it have returned, though nothing may have seen that yet. May run while the
 * thread's own probe has been interrupted.
 */
VERIFIED_ONCE __u64 span_at(__u32 tid, __u32 tgid, __u64 sp)
{
	struct thread_state *t = bpf_map_lookup_elem(&threads, &tid);
	__u64 id = 0, start = 0;

	if (!t || t->tgid != tgid)
		return 0;
	for (__u32 i = 0, depth = t->depth; i < MAX_DEPTH; i++) {
		if (depth == 0 || depth > MAX_DEPTH)
			break;
		struct frame *f = &t->frame[--depth & (MAX_DEPTH - 1)];

		if (f->sp > sp && !stale(f->flags, f->epoch)) {
			id = f->span_id;
			start = f->start_ns;
			break;
		}
	}
	__u32 scopes = t->scopes;

	if (scopes > 0 && scopes <= MAX_SCOPES) {
		struct open_scope *s = &t->scope[(scopes - 1) & (MAX_SCOPES - 1)];

		if (s->start_ns >= start && !stale(s->flags, s->epoch))
			id = s->span_id;
	}
	return id;
}

/* Walks from the registers in w->start; cache may be null. The walks nest deep: this is inlined. */
static __always_inline __u64 take_stack(struct stack_workspace *w, struct stack_cache *cache)
{
	start_in_thread(&w->start);
	walk_native(&w->start, cache ? &cache->native : 0, &w->native_scratch, &w->native);
	walk_python(&w->start, &w->python_scratch, &w->python_memory, cache ? &cache->python : 0, &w->python);
	return name_stack(w);
}

/* Likewise, of the Python frames alone; 0 where there are none. */
static __always_inline __u64 take_python_stack(struct stack_workspace *w)
{
	start_in_thread(&w->start);
	w->of_call = 1;
	w->native.sp = w->start.sp;
	w->native.count = 0;
	w->native.outcome = NATIVE_END;
	w->native_scratch.used = 0;
	trail_begin(&w->native_scratch.trail);
	w->sent_in = 0;
	walk_python(&w->start, &w->python_scratch, &w->python_memory, 0, &w->python);
	if (!*(volatile __u32 *)&w->python.count)
		return 0;
	return name_stack(w);
}

#endif
