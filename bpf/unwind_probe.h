/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What uprobes hide from the native walk: a return address that a return probe has taken
 * the place of, an instruction that runs elsewhere, or that the kernel does for the thread.
 */
#ifndef EBPFPROF_UNWIND_PROBE_H
#define EBPFPROF_UNWIND_PROBE_H

#include "unwind_state.h"

/* The first slot of the kernel's page is where return probes return to. */
#if defined(__TARGET_ARCH_arm64)
#define FIRST_SLOT 4	/* a brk */
#define ENTRY_STACK(cfa) (cfa)
#else
#define FIRST_SLOT 128	/* UPROBE_XOL_SLOT_BYTES */
#define ENTRY_STACK(cfa) ((cfa) - 8)
#endif

/*
 * The innermost frame has returned to a return probe. Since 6.11 x86 has code there:
 * it pushes rax, rcx and r11 and calls uretprobe, which takes the probe off the list,
 * puts the return address in rax's place, and ends where r11 and rcx are popped before
 * a ret (arch/x86/kernel/uprobes.c, uretprobe_trampoline_entry). The next pending return
 * is above all that is pushed, which tells before from after.
 */
static __always_inline int returned_to_probe(struct native_scratch *s)
{
	struct pending_return r = {};
	__u64 sp = s->reg[UNWIND_SP];

	s->caller = 1;
	s->link = 0;
#if defined(__TARGET_ARCH_arm64)
	if (!next_return_at(s, &r) || r.stack != sp)
		return NATIVE_RETURN_PROBE;
	s->pc = r.address;
#else
	switch (s->pc & 4095) {
	case 0:
		break;
	case 1:		/* rax is pushed */
		sp += 8;
		break;
	case 2:		/* rcx is */
		sp += 16;
		break;
	case 4:		/* r11 is */
	case 11:	/* before the system call */
	case 13:	/* in it, or behind it */
		sp += 24;
		break;
	case 15:	/* r11 is popped */
		sp += 8;
		goto after;
	case 16:	/* rcx is */
		goto after;
	default:
		return NATIVE_RETURN_PROBE;
	}
	if (next_return_at(s, &r) && r.stack + 8 == sp) {
		s->reg[UNWIND_SP] = sp;
		s->pc = r.address;
		return NATIVE_GOES_ON;
	}
	if ((s->pc & 4095) != 13)
		return NATIVE_RETURN_PROBE;
	s->instances = 0;	/* that one is yet to be met */
	s->instance = 0;
	sp -= 8;
after:
	if (read_user_at(s->context, 8, sp))
		return NATIVE_BAD_READ;
	s->pc = s->context[0];
	s->reg[UNWIND_SP] = sp + 8;
#endif
	return NATIVE_GOES_ON;
}

/*
 * Whether the first frame was entered through a probed push that the kernel does for the
 * thread: it moves the stack pointer before the pc, and what was taken for the return
 * address is the register that was pushed. The return address is the next word.
 */
static __always_inline bool pushed_at_entry(struct native_scratch *s, struct native_stack *out)
{
#if defined(__TARGET_ARCH_x86)
	__u8 *code = (__u8 *)s->context;

	if (out->count != 1 || s->reg[UNWIND_SP] != out->sp + 8)
		return false;
	if (read_user_at(code, 1, out->frame[0].pc) || code[0] != 0xcc)
		return false;
	if (read_user_at(s->context, 8, s->reg[UNWIND_SP]))
		return false;
	s->pc = s->context[0];
	s->reg[UNWIND_SP] += 8;
	out->frame[0].cfa += 8;
	return true;
#else
	return false;
#endif
}

/*
 * The pc is in no file. Puts the address there that a return probe replaced, or
 * that is being single-stepped elsewhere. The probes are met in the order in
 * which they are pending, innermost first; what lies below the stack pointer
 * was left by longjmp.
 */
static __noinline int repair(struct native_scratch *s, struct native_stack *out)
{
	struct pending_return r = {};
	__u32 frames = out->count;

	s->trail.broken = 1;
	if (!in_probe_page_at(s->pc)) {
		if (s->pc == 0 && frames)
			return NATIVE_END;
		if (!pushed_at_entry(s, out))
			return NATIVE_NO_MAPPING;
	} else if (frames == 0) {
		if ((s->pc & 4095) < FIRST_SLOT) {
			int outcome = returned_to_probe(s);

			if (outcome != NATIVE_GOES_ON)
				return outcome;
		} else {
			s->pc = stepped_address_at();
			if (in_probe_page_at(s->pc))
				return NATIVE_RETURN_PROBE;
		}
	} else {
		__u64 stack = ENTRY_STACK(s->reg[UNWIND_SP]);

		if (!next_return_at(s, &r) || r.stack > stack)
			return NATIVE_RETURN_PROBE;
		if (r.stack == stack)
			s->pc = r.address;
	}
	s->flags |= NATIVE_REPAIRED;
	return NATIVE_GOES_ON;
}

#endif
