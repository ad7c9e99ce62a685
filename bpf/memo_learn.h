/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How a stack that was walked comes into the tables of memo.h. */
#ifndef EBPFPROF_MEMO_LEARN_H
#define EBPFPROF_MEMO_LEARN_H

#include "memo.h"

static __always_inline void memo_begin(const struct memo_workspace *m, const struct stack_workspace *w,
				       struct memo_entry *e)
{
	const struct walk_start *s = &w->start;

	e->generation = m->generation;
	e->tid = s->tid;
	e->spec = m->spec;
	e->pc = s->pc;
	e->sp = s->sp;
	e->fp = s->fp;
	e->lr = s->lr;
	e->used = w->native_scratch.used;
	e->epoch = w->sent_in;
	e->last_ns = m->now_ns;
	e->hits = 0;
	e->stack_bytes = 0;
	e->ranges = 0;
	e->words = 0;
}

struct memo_placing {
	struct memo_workspace *workspace;
	struct memo_entry *entry;
	const struct trail *trail;
	bool stack;	/* whether those words are placed that are read with the stack */
};

/* Where a range goes from and to with one word more. */
#define MEMO_FROM(r, address) ((address) < (r)->address ? (address) : (r)->address)
#define MEMO_TO(r, address) \
	((address) + 8 > (r)->address + (r)->bytes ? (address) + 8 : (r)->address + (r)->bytes)

/* Has what is read of the stack go on to a word that is not far from its end. */
static long memo_extend(__u32 index, void *context)
{
	struct memo_placing *p = context;
	struct memo_entry *e = p->entry;
	__u64 above = p->trail->address[index & (TRAIL_WORDS - 1)] - e->sp;

	if (index >= p->trail->length)
		return 1;
	if (above >= e->stack_bytes && above <= e->stack_bytes + MEMO_GAP && above + 8 <= MEMO_RANGE_BYTES)
		e->stack_bytes = above + 8;
	return 0;
}

/* Finds the range that is near to a word; what it finds goes into memory, for the verifier. */
VERIFIED_ONCE int memo_near(const struct memo_entry *e, struct memo_workspace *m, __u64 address)
{
	if (!e || !m)
		return 0;
	m->range = e->ranges;
	for (__u32 i = 0; i < MEMO_RANGES; i++) {
		const struct memo_range *r = &e->range[i];

		if (i >= e->ranges)
			break;
		if (address + MEMO_GAP < r->address || address > r->address + r->bytes + MEMO_GAP ||
		    MEMO_TO(r, address) - MEMO_FROM(r, address) > MEMO_RANGE_BYTES)
			continue;
		m->range = i;
		break;
	}
	return 0;
}

/* Finds or makes a range for one word of a trail. at is the range for now, value the address. */
static long memo_place(__u32 index, void *context)
{
	struct memo_placing *p = context;
	struct memo_workspace *m = p->workspace;
	struct memo_entry *e = p->entry;
	__u64 address = p->trail->address[index & (TRAIL_WORDS - 1)], above = address - e->sp, from;
	__u32 word = e->words, n;
	struct memo_range *r;

	if (index >= p->trail->length || m->failed)
		return 1;
	if ((above < e->stack_bytes && above + 8 <= e->stack_bytes) != p->stack)
		return 0;
	m->failed = 1;
	barrier_var(word);
	if (word >= MEMO_WORDS)
		return 1;
	e->at[word] = 0;
	e->value[word] = address;
	e->words = word + 1;
	if (!p->stack) {
		memo_near(e, m, address);
		n = m->range;
		barrier_var(n);
		if (n >= MEMO_RANGES)
			return 1;
		r = &e->range[n];
		if (n == e->ranges) {
			e->ranges = n + 1;
			r->address = address;
			r->bytes = 8;
		}
		from = MEMO_FROM(r, address);
		r->bytes = MEMO_TO(r, address) - from;
		r->address = from;
		e->at[word] = n;
	}
	m->failed = 0;
	return 0;
}

struct memo_filling {
	struct memo_entry *entry;
	struct memo_workspace *workspace;
};

/* Gives a word its place in what is read, and its value. */
static long memo_fill_word(__u32 i, void *context)
{
	struct memo_filling *f = context;
	struct memo_entry *e = f->entry;
	const struct memo_range *r;

	if (i >= e->words || i >= MEMO_WORDS)
		return 1;
	r = &e->range[e->at[i] & (MEMO_RANGES - 1)];
	if (i < e->stack_words)
		e->at[i] = e->value[i] - e->sp;
	else
		e->at[i] = r->at + (e->value[i] - r->address);
	e->value[i] = MEMO_WORD(f->workspace, e->at[i]);
	return 0;
}

static __noinline int memo_fill(struct memo_entry *e, struct memo_workspace *m)
{
	struct memo_filling f = { .entry = e, .workspace = m };

	/* Behind all that may be read of the stack, for another one too. */
	m->bytes = MEMO_RANGE_BYTES;
	for (__u32 i = 0; i < MEMO_RANGES; i++) {
		if (i >= e->ranges)
			break;
		e->range[i].at = m->bytes;
		m->bytes += e->range[i].bytes;
	}
	if (m->bytes > MEMO_BYTES || memo_read_stack(m, e->sp, e->stack_bytes) || memo_read(e, m))
		return 1;
	bpf_loop(MEMO_WORDS, memo_fill_word, &f, 0);
	return 0;
}

/* Repeats the last word until their number is a multiple of MEMO_STEP. */
static __always_inline void memo_pad(struct memo_entry *e)
{
#pragma unroll
	for (int i = 1; i < MEMO_STEP; i++) {
		__u32 n = e->words;

		if (!(n & (MEMO_STEP - 1)))
			break;
		e->at[n & (MEMO_WORDS - 1)] = e->at[(n - 1) & (MEMO_WORDS - 1)];
		e->value[n & (MEMO_WORDS - 1)] = e->value[(n - 1) & (MEMO_WORDS - 1)];
		e->words = n + 1;
	}
}

/* Does something with each word of both walks. */
#define MEMO_EACH(placing, w, what)					\
	({								\
		(placing).trail = &(w)->native_scratch.trail;		\
		bpf_loop(TRAIL_WORDS, what, &(placing), 0);		\
		(placing).trail = &(w)->python_scratch.trail;		\
		bpf_loop(TRAIL_WORDS, what, &(placing), 0);		\
	})

static __noinline int memo_trails(struct memo_entry *e, struct memo_workspace *m, struct stack_workspace *w)
{
	struct memo_placing p = { .workspace = m, .entry = e, .stack = true };

	m->failed = 0;
	MEMO_EACH(p, w, memo_extend);
	MEMO_EACH(p, w, memo_place);
	memo_pad(e);
	e->stack_words = e->words;
	p.stack = false;
	MEMO_EACH(p, w, memo_place);
	memo_pad(e);
	return m->failed || memo_fill(e, m);
}

/* Whether a stack is all that its trails say: what failed for a reason that may pass is not. */
static __always_inline bool memo_fits(const struct stack_workspace *w)
{
	const __u32 native = 1 << NATIVE_END | 1 << NATIVE_MAX_FRAMES | 1 << NATIVE_NO_ROW |
			     1 << NATIVE_ANONYMOUS_CODE | 1 << NATIVE_EXPRESSION | 1 << NATIVE_REGISTER;
	const __u32 python = 1 << PYTHON_OK | 1 << PYTHON_NO_INTERPRETER | 1 << PYTHON_NO_THREAD_STATE |
			     1 << PYTHON_NO_FRAMES | 1 << PYTHON_MAX_FRAMES;

	return (native >> (w->native.outcome & 31) & 1) && (python >> (w->python.outcome & 31) & 1) &&
	       !w->python.cold && !w->native_scratch.trail.broken && !w->python_scratch.trail.broken &&
	       w->sent_in;
}

/* Chooses the entry for a stack: its old one, a free one, or that which was used longest ago. */
static __always_inline __u32 memo_choose(const struct stack_workspace *w, __u32 spec, __u64 id)
{
	const struct walk_start *s = &w->start;
	const struct trail *python = &w->python_scratch.trail;
	__u64 sum = mix(mix(id, s->sp), (__u64)spec << 32 | s->tid);
	__u32 base, chosen = 0;
	__u64 oldest = ~0ULL;

	/* Until 3.10 a frame is an object of its own, now here, now there: the
	 * same stack is another one to keep. Three words are of each. */
	for (__u32 i = 2; i < 2 + 3 * MEMO_FRAMES; i += 3)
		if (i < python->length)
			sum = mix(sum, python->address[i]);
	base = sum % MEMO_ENTRIES;
	for (__u32 i = 0; i < MEMO_CHOICES; i++) {
		__u32 number = (base ^ i) + 1;
		struct memo_entry *e = memo_entry(number);

		if (!e)
			continue;
		if (e->id == id && e->tid == s->tid && e->sp == s->sp && e->spec == spec)
			return number;
		if ((e->id ? e->last_ns : 0) < oldest) {
			oldest = e->id ? e->last_ns : 0;
			chosen = number;
		}
	}
	return chosen;
}

static __noinline int memo_offer(struct memo_workspace *m, const struct walk_start *s, __u32 number)
{
	struct memo_set *set = memo_set(m, s);
	__u32 moved = number;

	if (!set)
		return 0;
	for (__u32 i = 0; i < MEMO_WAYS; i++) {
		__u32 was = set->entry[i];

		set->entry[i] = moved;
		if (was == number)
			break;
		moved = was;
	}
	return 0;
}

/* Keeps the stack that was just walked: where another was found by mistake, in its place. */
VERIFIED_ONCE int memo_learn(struct stack_workspace *w, struct memo_workspace *m, __u64 id)
{
	__u32 number, sequence;
	struct memo_entry *e;
	bool fits;

	/* A function by itself to the verifier, whoever calls it. */
	if (!HAVE_BPF_LOOP || !w || !m)
		return 0;
	fits = memo_fits(w);
	number = m->found;
	m->found = 0;
	if (!fits)
		memo_count(m, MEMO_UNFIT);
	if (!fits && !number)
		return 0;
	if (!number)
		number = memo_choose(w, m->spec, id);
	e = memo_entry(number);
	if (!e)
		return 0;
	sequence = *(volatile __u32 *)&e->sequence;
	/* Another CPU has it, for a thread whose stack falls to the same place. */
	if ((sequence & 1) || __sync_val_compare_and_swap(&e->sequence, sequence, sequence + 1) != sequence)
		return 0;
	e->id = 0;
	if (fits) {
		memo_begin(m, w, e);
		if (memo_trails(e, m, w)) {
			memo_count(m, MEMO_UNFIT);
		} else {
			e->id = id;
			m->found = number;
		}
	}
	__sync_fetch_and_add(&e->sequence, 1);
	if (m->found)
		memo_offer(m, &w->start, number);
	return 0;
}

/* Takes note of a walk: of a stack that was not found, or to compare it with what was. */
static __noinline int memo_walked(struct stack_workspace *w, struct memo_workspace *m, __u64 id)
{
	struct memo_entry *e = memo_entry(m->found);

	if (!HAVE_BPF_LOOP || !memo_every)
		return 0;
	if (!e) {
		memo_count(m, MEMO_WALKED);
		return memo_learn(w, m, id);
	}
	memo_count(m, MEMO_VERIFIED);
	if (id == m->id) {
		if (w->sent_in)
			e->epoch = w->sent_in;
		return 0;
	}
	memo_count(m, MEMO_MISMATCHED);
	return memo_learn(w, m, id);
}

#endif
