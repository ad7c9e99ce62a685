/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Stacks of hot calls, memoised instead of walked again.
 *
 * A walk keeps the addresses of the words that told it where to go (trail.h):
 * return addresses, and of the interpreter the list of frames with the
 * instruction of each. A call of the same thread, from the same place, at the
 * same stack pointer, where all of those words still have their values, has the
 * stack that was walked then: walking it would read the same words. So a guess
 * which stack it is may come from anywhere; what proves it are the words. They
 * are read in a few large pieces, which takes some twentieth of a walk: what lies
 * on the stack in one, from the stack pointer up, for all stacks that it may be.
 *
 * What the words do not say is whether the code object at an address is still
 * the same one. Therefore one hit in memo_every is walked all the same and
 * compared, as is the first of each epoch of stacks_seen, when frames are sent
 * again; how many differed is counted, and told in the dataset.
 *
 * What the loader changes in the tables that walks use makes another generation.
 */
#ifndef EBPFPROF_MEMO_H
#define EBPFPROF_MEMO_H

#include "stacks.h"

#define MEMO_ENTRIES 4096
#define MEMO_CHOICES 4		/* entries in which a stack may be kept */
#define MEMO_FRAMES 16		/* innermost ones whose place tells stacks apart */
#define MEMO_SETS 2048
#define MEMO_WAYS 8		/* stacks that begin alike */
#define MEMO_WORDS 256
#define MEMO_STEP 8		/* words that are compared without a branch between */
#define MEMO_RANGES 32
#define MEMO_RANGE_BYTES 16384
#define MEMO_BYTES 65536	/* of the stack and all ranges: a word's place has 16 bits */
#define MEMO_GAP 2048		/* reading so many bytes more is cheaper than another read */

enum memo_count {
	MEMO_HIT,		/* the stack was found */
	MEMO_WALKED,		/* no stack that begins so is known, or its words differ */
	MEMO_UNFIT,		/* of those: what words alone do not determine, or too many */
	MEMO_VERIFIED,		/* found, and walked to compare */
	MEMO_MISMATCHED,	/* of those: another stack */
	MEMO_COUNTS,
	MEMO_LINES = MEMO_COUNTS,	/* the same counts of stacks of Python frames alone begin here */
};

struct memo_range {
	__u64 address;
	__u32 bytes;
	__u32 at;		/* where it is read to */
};

struct memo_entry {
	__u32 sequence;		/* odd while it is being written */
	__u32 generation;
	__u32 tid;
	__u32 spec;
	__u64 pc;
	__u64 sp;
	__u64 fp;
	__u64 lr;
	__u64 id;		/* of the stack; 0: nothing is kept here */
	__u64 last_ns;
	__u32 epoch;		/* in which its frames were sent */
	__u32 used;		/* native_scratch.used */
	__u32 hits;
	__u32 next;		/* the stack that came after it on its thread, entry + 1 */
	__u16 stack_bytes;	/* from the stack pointer on: read to the beginning of the memory */
	__u16 stack_words;	/* the first ones: they lie there */
	__u16 ranges;		/* of the other words: Python's frames, and what is far up the stack */
	__u16 words;
	struct memo_range range[MEMO_RANGES];
	__u16 at[MEMO_WORDS];
	__u64 value[MEMO_WORDS];
};

/* Entries + 1 whose stacks begin alike, the last used first. */
struct memo_set {
	__u32 entry[MEMO_WAYS];
};

struct memo_workspace {
	__u64 now_ns;
	__u64 hint;		/* of what else distinguishes calls from one place */
	__u64 id;		/* of the stack that was found */
	__u32 epoch;		/* likewise */
	__u32 spec;
	__u32 last;		/* entry + 1 of the thread's stack before this one */
	__u32 guess;		/* likewise of this one, for now */
	__u32 found;		/* of this one; 0: none */
	__u32 stack_bytes;	/* that were read from the stack pointer on */
	__u32 counts;		/* 0 or MEMO_LINES */
	/* While a stack's words are placed: */
	__u32 range;		/* that takes one */
	__u32 bytes;		/* of all ranges */
	__u32 failed;
	__u32 generation;
	__u32 pad;
	__u8 memory[MEMO_BYTES + MEMO_RANGE_BYTES];
};

_Static_assert(__builtin_offsetof(struct memo_workspace, memory) % 8 == 0, "words of it are read as such");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct memo_entry);
	__uint(max_entries, MEMO_ENTRIES);
} memo_entries SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct memo_set);
	__uint(max_entries, MEMO_SETS);
} memo_sets SEC(".maps");

/* One for each CPU, which is more than a per-CPU array can hold. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct memo_workspace);
	__uint(max_entries, 1);	/* sized by the loader */
} memo_workspaces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 2 * MEMO_COUNTS);
} memo_counts SEC(".maps");

/* Of so many hits one is walked to compare, a power of two; 0: nothing is memoised. */
const volatile __u32 memo_every = 256;

static __always_inline void memo_count(const struct memo_workspace *m, __u32 what)
{
	__u64 *n;

	what += m->counts;
	n = bpf_map_lookup_elem(&memo_counts, &what);

	if (n)
		(*n)++;
}

static __always_inline struct memo_entry *memo_entry(__u32 number)
{
	__u32 index = number - 1;

	return bpf_map_lookup_elem(&memo_entries, &index);
}

/* Reads the stack from its pointer on, if so many bytes of it were not read yet; not 0 if it can not be. */
static __always_inline int memo_read_stack(struct memo_workspace *m, __u64 sp, __u32 bytes)
{
	if (bytes <= m->stack_bytes)
		return 0;
	if (bytes > MEMO_RANGE_BYTES || bpf_probe_read_user(m->memory, bytes, (void *)sp))
		return 1;
	m->stack_bytes = bytes;
	return 0;
}

/* The word at a place in the memory, as a whole: clang would take the bytes one by one. */
#define MEMO_WORD(m, at) (*({ __u64 *word_ = (__u64 *)&(m)->memory[at]; word_; }))

/* Reads the entry's ranges; not 0 if one could not be read. */
static __always_inline int memo_read(const struct memo_entry *e, struct memo_workspace *m)
{
	for (__u32 i = 0; i < MEMO_RANGES; i++) {
		const struct memo_range *r = &e->range[i];
		__u32 bytes = r->bytes, at = r->at;
		__u64 word;

		if (i >= e->ranges)
			break;
		if (bytes > MEMO_RANGE_BYTES || at > MEMO_BYTES - 8)
			return 1;
		/* The kernel copies a word to the BPF stack in four fifths of the time
		 * in which it copies one to a map. */
		if (bytes == sizeof(word)) {
			if (bpf_probe_read_user(&word, sizeof(word), (void *)r->address))
				return 1;
			MEMO_WORD(m, at) = word;
		} else if (bpf_probe_read_user(&m->memory[at], bytes, (void *)r->address)) {
			return 1;
		}
	}
	return 0;
}

/* Compares the words from the from-th on with what was read: both are multiples of MEMO_STEP. */
static __always_inline __u64 memo_differ(const struct memo_entry *e, const struct memo_workspace *m, __u32 from, __u32 to)
{
	__u64 differ = 0;

	for (__u32 i = 0; i < MEMO_WORDS; i += MEMO_STEP) {
		__u32 n = (from + i) & (MEMO_WORDS - MEMO_STEP);

		if (from + i >= to)
			break;
#pragma unroll
		for (int j = 0; j < MEMO_STEP; j++)
			differ |= MEMO_WORD(m, e->at[n + j]) ^ e->value[n + j];
	}
	return differ;
}

/* Whether the thread has the entry's stack: all that led the walk there is as it was. */
VERIFIED_ONCE int memo_holds(const struct memo_entry *e, struct memo_workspace *m, const struct walk_start *s)
{
	__u32 sequence;

	if (!e || !m || !s)
		return 0;
	sequence = *(volatile __u32 *)&e->sequence;
	if ((sequence & 1) || !e->id || e->tid != s->tid || e->spec != m->spec || e->pc != s->pc ||
	    e->sp != s->sp || e->generation != m->generation)
		return 0;
	if ((e->used & 1 << UNWIND_FP) && e->fp != s->fp)
		return 0;
	if ((e->used & USED_LINK) && e->lr != s->lr)
		return 0;
	if (memo_read_stack(m, s->sp, e->stack_bytes) || memo_differ(e, m, 0, e->stack_words))
		return 0;
	if (memo_read(e, m) || memo_differ(e, m, e->stack_words, e->words))
		return 0;
	m->id = e->id;
	m->epoch = e->epoch;
	return *(volatile __u32 *)&e->sequence == sequence;
}

static __always_inline struct memo_set *memo_set(const struct memo_workspace *m, const struct walk_start *s)
{
	__u32 index = mix(mix(s->tid, s->sp), m->hint ^ m->spec) % MEMO_SETS;

	return bpf_map_lookup_elem(&memo_sets, &index);
}

struct memo_search {
	struct memo_workspace *workspace;
	const struct walk_start *start;
	struct memo_set *set;
};

/* Looks at one of the stacks that begin alike. */
static long memo_try(__u32 i, void *context)
{
	struct memo_search *search = context;
	struct memo_workspace *m = search->workspace;
	struct memo_set *set = search->set;
	__u32 number = set->entry[i & (MEMO_WAYS - 1)];
	struct memo_entry *e;

	if (number == m->guess)
		return 0;
	e = memo_entry(number);
	if (!e || !memo_holds(e, m, search->start))
		return 0;
	m->found = number;
	set->entry[i & (MEMO_WAYS - 1)] = set->entry[0];
	set->entry[0] = number;
	return 1;
}

/* What it finds goes into memory: the verifier follows one way on from here, not one for each. */
static __noinline int memo_search(struct memo_workspace *m, const struct walk_start *s)
{
	struct memo_search search = { .workspace = m, .start = s, .set = memo_set(m, s) };

	if (search.set)
		bpf_loop(MEMO_WAYS, memo_try, &search, 0);
	return 0;
}

/*
 * Guesses which stack a call has, and reads what would prove it of the stack:
 * there are some of the call's arguments too.
 */
static __always_inline void memo_guess(struct memo_workspace *m, const struct walk_start *s)
{
	struct memo_entry *e;

	m->guess = 0;
	m->stack_bytes = 0;
	/* Before the walk, which may still see what was there before the next. */
	m->generation = memo_generation;
	/* Jobs repeat themselves: what came after the one before? */
	e = memo_entry(m->last);
	if (!e)
		return;
	m->guess = e->next;
	e = memo_entry(m->guess);
	if (e && e->sp == s->sp)
		memo_read_stack(m, s->sp, e->stack_bytes);
}

/* Finds the call's stack. */
static __always_inline void memo_find(struct memo_workspace *m, const struct walk_start *s)
{
	struct memo_entry *e = memo_entry(m->guess);

	m->found = 0;
	if (!HAVE_BPF_LOOP || !memo_every)
		return;
	if (e && memo_holds(e, m, s))
		m->found = m->guess;
	else
		memo_search(m, s);
}

/* Takes note if it was found, and reports whether that is all: it is not to be walked to compare. */
static __always_inline bool memo_found(struct memo_workspace *m)
{
	struct memo_entry *e = memo_entry(m->found);

	if (!e)
		return false;
	e->last_ns = m->now_ns;
	e->hits++;
	memo_count(m, MEMO_HIT);
	return (e->hits & (memo_every - 1)) && m->epoch == stack_epoch(m->id, m->now_ns);
}

/* Notes which stack came last on the thread, for the next guess. */
static __always_inline void memo_follows(struct memo_workspace *m)
{
	struct memo_entry *last = memo_entry(m->last);

	if (last && last->next != m->found)
		last->next = m->found;
}

#endif
