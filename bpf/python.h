/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The Python half of a call stack: from the thread pointer to the thread's
 * PyThreadState, and from there along the interpreter's own list of frames. No
 * symbol and no unwind table is needed, and nothing that the native walk does
 * or fails to do matters here.
 *
 * The thread state comes from the pthread slot in which CPython keeps it for
 * PyGILState_Ensure, and not from the thread-local that names the running one:
 * that is NULL while the thread has released the GIL, as it has in most calls
 * that are of interest.
 *
 * Only bpf_probe_read_user and a loop are asked of the environment, so that the
 * walk also compiles for user space, where tests run it over recorded memory.
 */
#ifndef EBPFPROF_PYTHON_H
#define EBPFPROF_PYTHON_H

#include "python_code.h"
#include "python_memory.h"
#include "python_runtime.h"
#include "stack.h"
#include "trail.h"

/* What python_step says at the end of the list. */
#define PYTHON_END -1

/* Of owner, from which value on a frame is the interpreter's own (3.12+). */
#define PYTHON_OWNER_SHIM 3

#define PYTHON_STATE_BYTES 184	/* of a PyThreadState: up to thread_id and native_thread_id */
#define PYTHON_INTERPRETERS 8	/* how many of a process are looked through */
#define PYTHON_NOT_KNOWN 2	/* of holds_gil and in_gc */

/* What a walk keeps in map memory besides its result. */
struct python_scratch {
	__u64 state;
	__u64 frame;		/* the next one */
	__u64 cframe;		/* that of the next segment */
	__u64 tortoise;		/* a frame passed earlier: met again, it is a loop */
	__u32 steps;
	__u32 entering;		/* the first frame may not be one yet */
	struct trail trail;
};

/* Reads the thread's slot of the key under which CPython keeps its thread state. */
static __noinline int python_find_state(const struct python_runtime *rt,
					const struct walk_start *start, struct python_scratch *s)
{
	__u64 tss = 1 | (__u64)rt->key << 32, block = start->thread_pointer + (__s64)rt->key_block, slot;
	__u32 key;

	/* Read each time: a forked child makes a new key. */
	if (rt->autotss && !python_read_word(&tss, rt->autotss))
		return PYTHON_NOT_INITIALISED;
	if (!(__u32)tss)
		return PYTHON_NOT_INITIALISED;
	key = tss >> 32;
	if (rt->keys_plain || key >= 32) {
		/* 32 blocks of 32: glibc's PTHREAD_KEYS_MAX. */
		__u64 entry = start->thread_pointer + (__s64)rt->key_table;

		if (!rt->keys_plain)
			entry += 8 * (key / 32 & 31);
		if (!python_read_word(&block, entry))
			return PYTHON_BAD_SLOT;
		trail_add(&s->trail, entry);
		if (!block)
			return PYTHON_NO_THREAD_STATE;
	}
	/* musl has 128 keys. */
	slot = block + (rt->keys_plain ? 8 * (key & 127) : 16 * (key & 31) + 8);
	if (!python_read_word(&s->state, slot))
		return PYTHON_BAD_SLOT;
	trail_add(&s->trail, slot);
	return s->state ? PYTHON_OK : PYTHON_NO_THREAD_STATE;
}

static __noinline int python_known_interpreter(const struct python_runtime *rt, __u64 interpreter)
{
	__u64 next, address = rt->interpreters;

	if (interpreter == rt->interpreter)
		return 1;
	for (int i = 0; i < PYTHON_INTERPRETERS; i++) {
		if (!python_read_word(&next, address) || !next)
			return 0;
		if (next == interpreter)
			return 1;
		address = next + rt->interpreter_next;
	}
	return 0;
}

/* Reads the state and makes sure that it is one, and this thread's. */
static __noinline int python_read_state(const struct python_runtime *rt, const struct walk_start *start,
					struct python_scratch *s, struct python_memory *m)
{
	__u64 self = start->thread_pointer + (__s64)rt->thread_self;
	__u32 native = PYTHON_ABSENT;

	if (bpf_probe_read_user(m->state, PYTHON_STATE_BYTES, (void *)s->state))
		return PYTHON_BAD_STATE;
	/* Either proves it. A child has its parent's native id until CPython's fork
	 * handler ran; a pthread_self may be that of the thread that made the state. */
	if (rt->state_native != PYTHON_ABSENT)
		native = PYTHON_INT(m->state, rt->state_native);
	if (PYTHON_WORD(m->state, rt->state_thread) != self &&
	    (native == PYTHON_ABSENT || native != start->ns_tid))
		return PYTHON_FOREIGN_STATE;
	if (!python_known_interpreter(rt, PYTHON_WORD(m->state, rt->state_interpreter)))
		return PYTHON_FOREIGN_STATE;
	return PYTHON_OK;
}

/*
 * Who holds the GIL, and whether its garbage is being collected. Both are said
 * of the main interpreter alone: another may have a GIL of its own.
 */
static __noinline int python_lock_state(const struct python_runtime *rt, const struct python_scratch *s,
					const struct python_memory *m, struct python_stack *stack)
{
	struct {
		__u64 holder;
		__u32 locked;
		__u32 pad;
	} gil;
	__u32 collecting;

	stack->holds_gil = PYTHON_NOT_KNOWN;
	stack->in_gc = PYTHON_NOT_KNOWN;
	if (PYTHON_WORD(m->state, rt->state_interpreter) != rt->interpreter)
		return 0;
	if (rt->gil && !bpf_probe_read_user(&gil, sizeof(gil), (void *)rt->gil))
		stack->holds_gil = gil.locked == 1 && gil.holder == s->state;
	if (rt->collecting &&
	    !bpf_probe_read_user(&collecting, sizeof(collecting), (void *)rt->collecting)) {
		/* The collector may have let go of the GIL in a finalizer: whether
		 * this thread is it is known only of the holder. */
		if (!collecting)
			stack->in_gc = 0;
		else if (stack->holds_gil == 1)
			stack->in_gc = 1;
	}
	return 0;
}

/* Where the list of frames begins. */
static __noinline int python_first_frame(const struct python_runtime *rt, struct python_scratch *s,
					 struct python_memory *m)
{
	s->frame = PYTHON_WORD(m->state, rt->state_frames);
	s->cframe = 0;
	s->entering = 0;
	trail_add(&s->trail, s->state + rt->state_frames);
	if (rt->anchor == PYTHON_ANCHOR_EACH)
		s->cframe = PYTHON_WORD(m->state, rt->state_cframe);
	if (rt->cframe_current != PYTHON_ABSENT) {
		s->cframe = s->frame;
		s->entering = 1;
		if (!python_read_link(m, &s->frame, s->cframe + rt->cframe_current))
			return PYTHON_BAD_ANCHOR;
		trail_add(&s->trail, s->cframe + rt->cframe_current);
	}
	return PYTHON_OK;
}

/* Ends the run of frames that began after the segment before. */
static __always_inline void python_end_segment(struct python_stack *stack, __u64 anchor)
{
	__u32 n = stack->segments;

	if (n >= MAX_PYTHON_SEGMENTS)
		return;
	stack->segment[n & (MAX_PYTHON_SEGMENTS - 1)].anchor = anchor;
	stack->segment[n & (MAX_PYTHON_SEGMENTS - 1)].end = stack->count;
	stack->segments = n + 1;
}

/* The C frame of a segment is its CFrame's; the next segment has the one before that. */
static __always_inline int python_pop_cframe(const struct python_runtime *rt, struct python_scratch *s,
					     struct python_memory *m, struct python_stack *stack)
{
	python_end_segment(stack, s->cframe);
	if (!s->frame)
		return 0;
	return python_read_link(m, &s->cframe, s->cframe + rt->cframe_previous) ? 0 : PYTHON_BAD_ANCHOR;
}

/*
 * 3.11 and 3.12 link a CFrame before they say which frame it runs. If what it
 * names at the top is no frame, the thread is just there: it still runs what
 * the CFrame before says.
 */
static __noinline int python_not_entered(const struct python_runtime *rt, struct python_scratch *s,
					 struct python_memory *m, struct python_stack *stack)
{
	s->entering = 0;
	s->trail.broken = 1;
	stack->segments = 0;
	stack->entering = 1;
	if (!python_read_link(m, &s->cframe, s->cframe + rt->cframe_previous) ||
	    !python_read_link(m, &s->frame, s->cframe + rt->cframe_current))
		return PYTHON_BAD_ANCHOR;
	return 0;
}

/* Takes one frame of the list; 0 to go on, else PYTHON_END or why it stopped. */
static __always_inline int python_step(const struct python_runtime *rt, struct python_scratch *s,
				       struct python_memory *m, struct python_cache *cache,
				       struct python_stack *stack)
{
	__u64 frame = s->frame;
	__u32 n = stack->count;
	int described;
	__s64 at;

	if (!frame)
		return PYTHON_END;
	if (frame == s->tortoise)
		return PYTHON_LOOP;
	if (!(s->steps & (s->steps + 1)))
		s->tortoise = frame;
	s->steps++;
	at = python_find_piece(m, frame, rt->frame_bytes & (PYTHON_PIECE - 1));
	if (at < 0)
		return s->entering ? python_not_entered(rt, s, m, stack) : PYTHON_BAD_FRAME;
	s->frame = PYTHON_PIECE_WORD(m, at, rt->frame_previous);
	trail_add(&s->trail, frame + rt->frame_previous);
	if (rt->anchor == PYTHON_ANCHOR_SHIM &&
	    PYTHON_PIECE_BYTE(m, at, rt->frame_owner) >= PYTHON_OWNER_SHIM) {
		python_end_segment(stack, frame);
		return n < max_python_frames() ? 0 : PYTHON_MAX_FRAMES;
	}
	if (n >= max_python_frames())
		/* Which C frame runs the last ones is known only at its own frame. */
		return rt->anchor == PYTHON_ANCHOR_SHIM ? 0 : PYTHON_MAX_FRAMES;
	trail_add(&s->trail, frame + rt->frame_instruction);
	/* Since 3.11 the instruction lies in the code object, and names it. */
	if (!rt->code_start)
		trail_add(&s->trail, frame + rt->frame_code);
	described = python_describe(rt, m, cache, frame, at, &stack->frame[n & (MAX_PYTHON_FRAMES - 1)]);
	if (described && s->entering)
		return python_not_entered(rt, s, m, stack);
	if (described == PYTHON_DESCRIBED_NOT)
		return PYTHON_BAD_FRAME;
	s->entering = 0;
	stack->cold += described;
	stack->count = n + 1;
	if (rt->anchor == PYTHON_ANCHOR_EACH)
		return python_pop_cframe(rt, s, m, stack);
	if (rt->anchor == PYTHON_ANCHOR_ENTRY && PYTHON_PIECE_BYTE(m, at, rt->frame_owner))
		return python_pop_cframe(rt, s, m, stack);
	return 0;
}

VERIFIED_ONCE int python_next(const struct python_runtime *rt, struct python_scratch *s,
			      struct python_memory *m, struct python_cache *cache, struct python_stack *stack)
{
	if (!rt || !s || !m || !stack)
		return PYTHON_MAX_FRAMES;
	return python_step(rt, s, m, cache, stack);
}

struct python_steps {
	const struct python_runtime *rt;
	struct python_scratch *scratch;
	struct python_memory *memory;
	struct python_cache *cache;
	struct python_stack *stack;
	int end;
};

static long python_loop_step(__u32 index, void *context)
{
	struct python_steps *steps = context;

	steps->end = python_next(steps->rt, steps->scratch, steps->memory, steps->cache, steps->stack);
	return steps->end != 0;
}

/* Between two frames there is at most one of the interpreter's own. */
#define PYTHON_MAX_STEPS (2 * MAX_PYTHON_FRAMES + 2)

static __always_inline int python_walk_frames(const struct python_runtime *rt, struct python_scratch *s,
					      struct python_memory *m, struct python_cache *cache,
					      struct python_stack *stack)
{
	struct python_steps steps = {
		.rt = rt, .scratch = s, .memory = m, .cache = cache, .stack = stack, .end = PYTHON_MAX_FRAMES,
	};
	int end;

	s->tortoise = 0;
	s->steps = 0;
	if (HAVE_BPF_LOOP) {
		bpf_loop(PYTHON_MAX_STEPS, python_loop_step, &steps, 0);
	} else {
		for (int i = 0; i < PYTHON_MAX_STEPS; i++) {
			int outcome = python_next(rt, s, m, cache, stack);

			if (outcome) {
				steps.end = outcome;
				break;
			}
		}
	}
	end = steps.end;
	/* The last run is open where the walk was cut or the version has no anchors.
	 * Of 3.11 the C frame that executes it is known all the same. */
	if (!stack->segments ||
	    stack->segment[(stack->segments - 1) & (MAX_PYTHON_SEGMENTS - 1)].end < stack->count)
		python_end_segment(stack, rt->anchor == PYTHON_ANCHOR_ENTRY ? s->cframe : 0);
	if (end != PYTHON_END)
		return end;
	return stack->count ? PYTHON_OK : PYTHON_NO_FRAMES;
}

/* The walk in the process that rt describes. */
static __always_inline int python_walk(const struct python_runtime *rt, const struct walk_start *start,
				       struct python_scratch *s, struct python_memory *m,
				       struct python_cache *cache, struct python_stack *stack)
{
	int failed;

	m->sp = start->sp;
	m->tgid = start->tgid;
	m->apart = !rt->code_start;
	m->window_bytes[PYTHON_FRAMES] = 0;
	m->window_bytes[PYTHON_ON_C_STACK] = 0;
	failed = python_find_state(rt, start, s);
	if (failed)
		return failed;
	failed = python_read_state(rt, start, s, m);
	if (failed)
		return failed;
	python_lock_state(rt, s, m, stack);
	failed = python_first_frame(rt, s, m);
	if (failed)
		return failed;
	return python_walk_frames(rt, s, m, cache, stack);
}

#endif
