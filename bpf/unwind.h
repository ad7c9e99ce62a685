/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The native walk: from a thread's registers to its outermost frame, by the
 * tables that the loader compiled from .eh_frame, without frame pointers.
 *
 * Use: walk_native(&start, cache, scratch, &stack) with all four in map memory;
 * cache may be null, where nothing is to be kept for the next walk.
 * It reads user memory of the current thread only.
 *
 * The same text compiles for user space, where the functions that end in _at
 * and the look-ups of unwind_maps.h come from the program that includes it
 * (testdata/native/walk.c) and memory may be a recording.
 */
#ifndef EBPFPROF_UNWIND_H
#define EBPFPROF_UNWIND_H

#include "unwind_state.h"
#include "unwind_lookup.h"
#include "unwind_cache.h"
#include "unwind_probe.h"

/* Each frame takes a step, each return probe in the way another. */
#define NATIVE_STEPS (MAX_NATIVE_FRAMES + 32)

#define CFA_UNKNOWN 0xffffffffU

#if defined(__TARGET_ARCH_arm64)
#define RETURN_SLOT(cfa, rule) ((cfa) + (rule)->aux)
#else
#define RETURN_SLOT(cfa, rule) ((cfa) - 8)
#endif

/* A frame is found through a register: its value is part of the trail. */
static __always_inline void goes_by_register(struct native_scratch *s, __u32 reg)
{
	if (reg == UNWIND_SP)
		return;	/* follows from the frames before */
	if (reg != UNWIND_FP) {
		s->trail.broken = 1;
		return;
	}
	if (s->fp_word == FP_AT_START)
		s->used |= 1 << UNWIND_FP;
	else if (s->fp_word != FP_ON_TRAIL)
		trail_add(&s->trail, s->fp_word);
	s->fp_word = FP_ON_TRAIL;
}

static __always_inline void found_cfa(struct native_stack *out, struct native_frame *f, __u64 cfa)
{
	__u64 d = cfa - out->sp;

	f->cfa = d < CFA_UNKNOWN ? d : CFA_UNKNOWN;
}

/* The frame that a signal interrupted: the kernel saved its registers on the stack. */
static __noinline int interrupted(struct native_scratch *s, struct native_stack *out,
				  struct native_frame *f)
{
	__u64 sp = s->reg[UNWIND_SP];

	s->trail.broken = 1;
#if defined(__TARGET_ARCH_arm64)
	/* arch/arm64/kernel/signal.c, struct rt_sigframe: regs[29], regs[30], sp, pc */
	if (read_user_at(s->context, 32, sp + 544))
		return NATIVE_BAD_READ;
	s->reg[UNWIND_FP] = s->context[0];
	s->lr = CODE_ADDRESS(s->context[1]);
	s->reg[UNWIND_SP] = s->context[2];
	s->pc = s->context[3];
	s->link = 1;
#else
	/* arch/x86/include/uapi/asm/sigcontext.h: the ucontext's, 40 bytes in */
	if (read_user_at(s->context, sizeof(s->context), sp + 40))
		return NATIVE_BAD_READ;
	s->reg[UNWIND_R10] = s->context[2];
	s->reg[UNWIND_R13] = s->context[5];
	s->lr = s->context[8];
	s->link = 1;
	s->reg[UNWIND_FP] = s->context[10];
	s->reg[UNWIND_SP] = s->context[15];
	s->pc = s->context[16];
#endif
	/* On a signal stack of its own the order ends here and begins anew. */
	if (s->reg[UNWIND_SP] > sp)
		found_cfa(out, f, s->reg[UNWIND_SP]);
	s->known = (1 << UNWIND_REGISTERS) - 1;
	s->caller = 0;
	s->flags = NATIVE_SIGNAL;
	return NATIVE_GOES_ON;
}

/*
 * Whether the thread will end a signal's handler there. arm64's vDSO need not describe
 * it: libgcc too knows it by its instructions, mov x8, #__NR_rt_sigreturn; svc #0
 * (libgcc/config/aarch64/linux-unwind.h).
 */
static __always_inline bool ends_handler(struct native_scratch *s)
{
#if defined(__TARGET_ARCH_arm64)
	return !read_user_at(s->context, 8, s->pc) && s->context[0] == 0xd4000001d2801168ULL;
#else
	return false;
#endif
}

/* The caller of a frame with a frame record: for code that no table describes. */
static __noinline int by_frame_pointer(struct native_scratch *s, struct native_stack *out,
				       struct native_frame *f, int otherwise)
{
	__u64 fp = s->reg[UNWIND_FP];

	if (ends_handler(s))
		return interrupted(s, out, f);
	goes_by_register(s, UNWIND_FP);
	if (fp == 0)
		return NATIVE_END;
	if ((fp & 7) || fp < s->reg[UNWIND_SP])
		return otherwise;
	if (read_user_at(s->context, 16, fp))
		return otherwise;
	trail_add(&s->trail, fp + 8);
	if (s->context[1] == 0)
		return NATIVE_END;
	s->fp_word = fp;
	found_cfa(out, f, fp + 16);
	s->reg[UNWIND_SP] = fp + 16;
	s->reg[UNWIND_FP] = s->context[0];
	s->pc = CODE_ADDRESS(s->context[1]);
	s->known = 1 << UNWIND_SP | 1 << UNWIND_FP;
	s->caller = 1;
	s->link = 0;
	s->flags = NATIVE_FRAME_POINTER;
	return NATIVE_GOES_ON;
}

#if defined(__TARGET_ARCH_x86)
/* What CPython's support for perf has behind its call: add rsp, 8; ret (Python/asm_trampoline.S, -X perf). */
#define TRAMPOLINE_END 0xc308c48348ULL
#define TRAMPOLINE_END_BITS 40

/*
 * Whether the frame is one of CPython's trampolines, through which each Python call passes there. On arm64, where they
 * keep a frame record, this need not be known.
 */
static __noinline bool in_trampoline(struct native_scratch *s)
{
	if (!s->caller || read_user_at(s->context, 8, s->pc))
		return false;
	return !((s->context[0] ^ TRAMPOLINE_END) << (64 - TRAMPOLINE_END_BITS));
}

/* Its caller: the processor goes by the same instructions, so that this is no guess. */
static __noinline int by_trampoline(struct native_scratch *s, struct native_stack *out, struct native_frame *f)
{
	__u64 sp = s->reg[UNWIND_SP];

	if (read_user_at(s->context, 8, sp + 8))
		return NATIVE_BAD_READ;
	if (!s->context[0])
		return NATIVE_END;
	trail_add(&s->trail, sp + 8);
	found_cfa(out, f, sp + 16);
	s->reg[UNWIND_SP] = sp + 16;
	s->pc = s->context[0];
	s->known &= 1 << UNWIND_SP | 1 << UNWIND_FP;
	s->caller = 1;
	s->link = 0;
	return NATIVE_GOES_ON;
}
#endif

/* Likewise, for generated code of which nothing is known: perhaps it is new. */
static __always_inline int by_generated_code(struct native_scratch *s, struct native_stack *out,
					     struct native_frame *f)
{
	s->trail.broken = 1;
#if defined(__TARGET_ARCH_x86)
	if (in_trampoline(s))
		return by_trampoline(s, out, f);
#endif
	s->wanted = 1;
	return by_frame_pointer(s, out, f, NATIVE_ANONYMOUS_CODE);
}

/* The caller of a function that was just entered, which needs no table. */
static __noinline int by_entry(struct native_scratch *s, struct native_stack *out, struct native_frame *f)
{
	__u64 sp = s->reg[UNWIND_SP];

#if defined(__TARGET_ARCH_arm64)
	found_cfa(out, f, sp);
	s->pc = s->lr;
	s->used |= USED_LINK;
#else
	if (read_user_at(s->context, 8, sp))
		return NATIVE_BAD_READ;
	trail_add(&s->trail, sp);
	found_cfa(out, f, sp + 8);
	s->reg[UNWIND_SP] = sp + 8;
	s->pc = s->context[0];
#endif
	s->known = 1 << UNWIND_SP | 1 << UNWIND_FP;
	s->caller = 1;
	s->link = 0;
	return NATIVE_GOES_ON;
}

/*
 * Whether an instruction that ends at the address can be a call: rel32, or
 * through register or memory (ff /2, of 2 to 7 bytes). The first byte may be
 * that of a probe. Where a return probe is pending, repair() has the last word.
 */
static __noinline bool behind_call(struct native_scratch *s, __u64 pc)
{
#if defined(__TARGET_ARCH_x86)
	__u8 *code = (__u8 *)s->context;
	__u64 call;

	if (read_user_at(code, 7, pc - 7))
		return in_probe_page_at(pc);
	call = same(code[2], 0xe8) | same(code[2], 0xcc);
#define CALL_OF(size) \
	((same(code[7 - (size)], 0xff) | same(code[7 - (size)], 0xcc)) & same(code[8 - (size)] & 0x38, 0x10))
	call |= CALL_OF(2) | CALL_OF(3) | CALL_OF(4) | CALL_OF(6) | CALL_OF(7);
#undef CALL_OF
	return call || in_probe_page_at(pc);
#else
	return true;
#endif
}

/* What a frame keeps of its caller. */
struct saved_registers {
	__u64 fp;
	__u64 ra;
};

/* Moves the window to an address; not 0 where so much can not be read. */
static __always_inline long move_window(struct native_scratch *s, __u64 address)
{
	__u64 last = (address + STACK_WINDOW - 1) & ~(__u64)(SMALLEST_PAGE - 1);

	s->window_at = NO_WINDOW;
	if (read_user_at(s->window, STACK_WINDOW, address)) {
		/* The stack may end behind this page. */
		if (address >= last || (address & 7))
			return -1;
		address = last - STACK_WINDOW;
		if (read_user_at(s->window, STACK_WINDOW, address))
			return -1;
	}
	s->window_at = address;
	return 0;
}

/* Reads a word of the stack. The walk goes up: what it needs next lies above. */
static __noinline long read_stack(struct native_scratch *s, __u64 *word, __u64 address)
{
	__u64 at = address - s->window_at;

	if (at > STACK_WINDOW - 8 || (at & 7)) {
		if (move_window(s, address))
			return read_user_at(word, 8, address);
		at = address - s->window_at;
	}
	OPAQUE(at);
	*word = s->window[at >> 3 & (STACK_WINDOW / 8 - 1)];
	return 0;
}

/* The lower of the two words first: the window then has both where they are near. */
static __always_inline long read_saved(struct native_scratch *s, const struct unwind_rule *rule,
				  __u64 cfa, struct saved_registers *saved)
{
	__u64 ra = RETURN_SLOT(cfa, rule);

	if (rule->ra == RA_LINK)
		s->used |= USED_LINK;
	else
		trail_add(&s->trail, ra);
	if (rule->fp_kind == FP_AT_CFA || rule->fp_kind == FP_AT_FP) {
		__u64 from = cfa;

		if (rule->fp_kind == FP_AT_FP) {
			goes_by_register(s, UNWIND_FP);
			from = s->reg[UNWIND_FP];
		}
		s->fp_word = from + rule->fp;
		if (read_stack(s, &saved->fp, s->fp_word))
			return -1;
	}
	saved->ra = s->lr;
	return rule->ra == RA_LINK ? 0 : read_stack(s, &saved->ra, ra);
}

/* The caller of a frame whose address is known. */
static __noinline int leave_frame(struct native_scratch *s, const struct unwind_rule *rule, __u64 cfa)
{
	struct saved_registers saved = { .fp = s->reg[UNWIND_FP] };

	if (read_saved(s, rule, cfa, &saved))
		return NATIVE_BAD_READ;
	if (saved.ra == 0)
		return NATIVE_END;
	s->pc = CODE_ADDRESS(saved.ra);
	s->reg[UNWIND_FP] = saved.fp;
	s->reg[UNWIND_SP] = cfa;
	s->known &= rule->fp_kind == FP_LOST ? 1 << UNWIND_SP : 1 << UNWIND_SP | 1 << UNWIND_FP;
	s->caller = 1;
	s->link = 0;
	if (rule->kind == RULE_INFERRED) {
		s->flags = NATIVE_INFERRED;
		if (!behind_call(s, s->pc))
			return NATIVE_NOT_A_CALL;
	}
	return NATIVE_GOES_ON;
}

static __noinline int by_rule(struct native_scratch *s, struct native_stack *out,
			      struct native_frame *f, const struct unwind_rule *rule)
{
	__u64 sp = s->reg[UNWIND_SP], cfa;

	if (rule->kind == RULE_NONE)
		return NATIVE_NO_ROW;
	if (rule->kind == RULE_SIGNAL)
		return interrupted(s, out, f);
	if (rule->kind == RULE_EXPRESSION)
		return NATIVE_EXPRESSION;
	if (rule->kind == RULE_REGISTER || !(s->known >> (rule->reg & 31) & 1))
		return rule->ra == RA_END ? NATIVE_END : NATIVE_REGISTER;
	if (rule->kind == RULE_PLT) {
		cfa = sp + 8 + ((s->pc & 15) >= (__u32)rule->aux ? 8 : 0);
	} else {
		cfa = s->reg[rule->reg & (UNWIND_REGISTERS - 1)];
		goes_by_register(s, rule->reg);
		if (rule->kind == RULE_DEREF || (rule->kind == RULE_INFERRED && rule->aux)) {
			__u64 at = cfa + rule->aux;

			if (read_stack(s, &cfa, at))
				return NATIVE_BAD_READ;
			trail_add(&s->trail, at);
		}
		cfa += rule->cfa;
	}
	if (rule->ra == RA_END) {
		found_cfa(out, f, cfa);
		return NATIVE_END;
	}
	if (rule->ra == RA_LINK && !s->link)
		return NATIVE_REGISTER;
	/* Only a function that has pushed nothing and keeps its return address in
	 * a register has no frame. */
	if (cfa < sp || (cfa == sp && rule->ra != RA_LINK))
		return NATIVE_LOOP;
	found_cfa(out, f, cfa);
	return leave_frame(s, rule, cfa);
}

/* Records the frame at pc. */
static __always_inline struct native_frame *record_frame(struct native_scratch *s, struct native_stack *out)
{
	__u32 n = out->count;
	struct native_frame *f = &out->frame[n & (MAX_NATIVE_FRAMES - 1)];

	f->pc = s->pc;
	f->cfa = CFA_UNKNOWN;
	f->flags = s->flags;
	out->count = n + 1;
	s->flags = 0;
	return f;
}

/* The rule is cached: goes to the caller by it. */
static __always_inline int step_cached(struct native_scratch *s, struct native_stack *out,
				      struct walk_cache *cache, __u64 key)
{
	const struct unwind_rule *rule = &cached_now(cache)->rule;

	if (out->count >= max_frames)
		return NATIVE_MAX_FRAMES;
	cache_keep(cache, s->reg[UNWIND_SP], key);
	return by_rule(s, out, record_frame(s, out), rule);
}

/* As move_window, once for all rounds. Not for read_stack, from where it would be one call too deep. */
static __noinline long next_window(struct native_scratch *s, __u64 address)
{
	return move_window(s, address);
}

/* So many plain frames in one round of the loop: a call and its return take as
 * long as half a frame. */
#define PLAIN_FRAMES 8

/*
 * Walks as long as frames are what nearly all are: their rule is cached, their
 * address is a register and an offset, what they keep lies at its upper end. It does
 * what step_cached does, without its calls, and leaves any other frame to it.
 * Returns how many it took.
 */
static __always_inline __u32 walk_plain(struct native_scratch *s, struct native_stack *out,
					struct walk_cache *cache)
{
	__u32 taken;

	for (taken = 0; taken < PLAIN_FRAMES; taken++) {
		__u64 sp = s->reg[UNWIND_SP], fp = s->reg[UNWIND_FP], key = s->pc - s->caller;
		const struct unwind_rule *rule;
		__u64 cfa, ra, slot, saved, low, apart, at;
		__u32 fp_kind;

		if (!cache_hit(cache, sp, key))
			break;
		rule = &cached_now(cache)->rule;
		fp_kind = rule->fp_kind;
		if (rule->kind != RULE_OFFSET || rule->reg > UNWIND_FP || rule->ra != RA_SAVED ||
		    fp_kind == FP_AT_FP || !(s->known >> (rule->reg & 31) & 1) || out->count >= max_frames)
			break;
		cfa = (rule->reg == UNWIND_SP ? sp : fp) + rule->cfa;
		slot = RETURN_SLOT(cfa, rule);
		saved = fp_kind == FP_AT_CFA ? cfa + rule->fp : slot;
		low = saved < slot ? saved : slot;
		/* Of the two differences one is 0: this is how far they are apart. */
		apart = (saved - low) + (slot - low);
		if (cfa <= sp || (slot & 7) || (saved & 7) || apart > STACK_WINDOW - 8)
			break;
		at = low - s->window_at;
		if ((at & 7 || at + apart > STACK_WINDOW - 8 || at > STACK_WINDOW) && next_window(s, low))
			break;
		at = slot - s->window_at;
		OPAQUE(at);
		ra = s->window[at >> 3 & (STACK_WINDOW / 8 - 1)];
		if (!ra)
			break;
		at = saved - s->window_at;
		OPAQUE(at);
		if (fp_kind == FP_AT_CFA)
			fp = s->window[at >> 3 & (STACK_WINDOW / 8 - 1)];
		if (KEEP_TRAIL) {
			goes_by_register(s, rule->reg);
			trail_add(&s->trail, slot);
			if (fp_kind == FP_AT_CFA)
				s->fp_word = cfa + rule->fp;
		}
		cache_keep(cache, sp, key);
		found_cfa(out, record_frame(s, out), cfa);
		s->pc = CODE_ADDRESS(ra);
		s->reg[UNWIND_FP] = fp;
		s->reg[UNWIND_SP] = cfa;
		s->known &= fp_kind == FP_LOST ? 1 << UNWIND_SP : 1 << UNWIND_SP | 1 << UNWIND_FP;
		s->caller = 1;
		s->link = 0;
	}
	return taken;
}

/* Records the frame at pc and goes to its caller. */
static __always_inline int native_step(struct native_scratch *s, struct native_stack *out,
				  const struct unwind_process *p, struct walk_cache *cache)
{
	const struct unwind_mapping *m;
	const struct unwind_file *file;
	const struct unwind_rule *rule;
	struct native_frame *f;
	__u32 n = out->count, at;
	__u64 key = s->pc - s->caller, offset;

	if (key >> 63)
		return NATIVE_NO_MAPPING;
	if (cache && !s->at_entry && cache_hit(cache, s->reg[UNWIND_SP], key))
		return step_cached(s, out, cache, key);
	/* Mostly that of the frame before. */
	at = s->mapping & (UNWIND_MAPPINGS - 1);
	if ((key - p->start[at]) >> 12 >= p->mapping[at].pages)
		at = s->mapping = find_mapping(p, key);
	if (cache && n == 0)
		cache->mapping = at;
	m = &p->mapping[at & (UNWIND_MAPPINGS - 1)];
	offset = key - p->start[at & (UNWIND_MAPPINGS - 1)];
	/* From here on in map memory: of stack there is none left. */
	s->file = m->file;
	s->address = offset + ((__u64)m->page << 12);
	s->untabled = 0;
	if (m->file == UNWIND_NO_FILE || offset >> 12 >= m->pages) {
		s->vma.key = key;
		if (!find_vma_at(&s->vma))
			return repair(s, out);
		s->trail.broken = 1;
		s->wanted |= !s->untold;
		s->file = s->vma.found.file;
		s->address = s->vma.found.address + (key - s->vma.found.start);
		s->untabled = 1;
	}
	if (n >= max_frames)
		return NATIVE_MAX_FRAMES;
	f = record_frame(s, out);
	if (n == 0 && s->at_entry)
		return by_entry(s, out, f);
	if (s->file == UNWIND_ANONYMOUS)
		return by_generated_code(s, out, f);
	file = unwind_file(s->file);
	if (!file || file->state == FILE_NO_TABLE)
		return by_frame_pointer(s, out, f, NATIVE_NO_TABLE);
	rule = find_rule(file, s->address);
	if (file->state == FILE_GENERATED && (!rule || rule->kind == RULE_NONE))
		return by_generated_code(s, out, f);
	if (!rule)
		return NATIVE_NO_ROW;
	if (cache && !s->untabled) {
		rule = cache_found(cache, key, rule);
		cache_keep(cache, s->reg[UNWIND_SP], key);
	}
	return by_rule(s, out, f, rule);
}

struct native_steps {
	struct native_scratch *scratch;
	struct native_stack *stack;
	const struct unwind_process *process;
	struct walk_cache *cache;
};

/* Some plain frames, or one of any kind. How it ended goes into map memory. */
VERIFIED_ONCE int native_round(struct native_scratch *s, struct native_stack *out,
			       const struct unwind_process *p, struct walk_cache *cache)
{
	if (!s || !out || !p)
		return 0;
	if (s->untold)	/* whatever is cached of it is the program's before */
		cache = 0;
	if (!cache || s->at_entry || walk_plain(s, out, cache) != PLAIN_FRAMES)
		out->outcome = native_step(s, out, p, cache);
	return 0;
}

static long native_loop_step(__u32 i, void *context)
{
	struct native_steps *steps = context;

	native_round(steps->scratch, steps->stack, steps->process, steps->cache);
	return steps->stack->outcome != NATIVE_GOES_ON;
}

static __noinline int walk_native(const struct walk_start *start, struct walk_cache *cache,
				  struct native_scratch *s, struct native_stack *out)
{
	const struct unwind_process *p = unwind_process(start->tgid);
	struct native_steps steps = { .scratch = s, .stack = out, .cache = cache };
	__u32 outcome;

	out->sp = start->sp;
	out->count = 0;
	s->pc = start->pc;
	s->lr = CODE_ADDRESS(start->lr);
	s->reg[UNWIND_SP] = start->sp;
	s->reg[UNWIND_FP] = start->fp;
	s->reg[UNWIND_R10] = start->r10;
	s->reg[UNWIND_R13] = start->r13;
	s->known = (1 << UNWIND_REGISTERS) - 1;
	s->flags = 0;
	s->caller = 0;
	s->link = 1;
	s->instance = 0;
	s->instances = 0;
	s->wanted = 0;
	s->mapping = 0;
	s->vma.tgid = start->tgid;
	s->vma.failed = 0;
	s->untold = !p;
	if (!p)
		p = unwind_process(UNTOLD_PROCESS);
	steps.process = p;
	s->at_entry = start->at_entry;
	s->used = 0;
	s->window_at = NO_WINDOW;
	s->fp_word = FP_AT_START;
	trail_begin(&s->trail);
	/* Before the walk, which may still see what was there before the next. */
	if (cache) {
		cache_begin(cache, start->tgid, walk_generation());
		s->mapping = cache->mapping;
	}
	out->outcome = NATIVE_GOES_ON;
	if (!p) {
		out->outcome = NATIVE_NO_PROCESS;
	} else if (p->flags & PROCESS_COMPAT) {
		out->outcome = NATIVE_COMPAT;
	} else if (HAVE_BPF_LOOP) {
		bpf_loop(NATIVE_STEPS, native_loop_step, &steps, 0);
	} else {
		for (int i = 0; i < NATIVE_STEPS && out->outcome == NATIVE_GOES_ON; i++)
			native_round(s, out, p, cache);
	}
	if (*(volatile __u32 *)&out->outcome == NATIVE_GOES_ON)
		out->outcome = NATIVE_MAX_FRAMES;
	outcome = *(volatile __u32 *)&out->outcome;
	if (cache)
		cache_end(cache);
	if (s->untold && outcome == NATIVE_NO_MAPPING)
		outcome = out->outcome = NATIVE_NO_PROCESS;
	if (s->wanted || outcome == NATIVE_NO_MAPPING)
		want_process(start->tgid);
	count_native_outcome(outcome);
	return outcome;
}

#endif
