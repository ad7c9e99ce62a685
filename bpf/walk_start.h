/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The part of a walk's start that is the registers'. */
#ifndef EBPFPROF_WALK_START_H
#define EBPFPROF_WALK_START_H

#include "stack.h"

/* From a probe's context. At a return probe pc is where the function returned to. */
static __always_inline void start_at_registers(struct walk_start *start, const struct pt_regs *regs)
{
	start->at_entry = 0;
#if defined(__TARGET_ARCH_x86)
	start->pc = regs->ip;
	start->sp = regs->sp;
	start->fp = regs->bp;
	start->lr = regs->di;
	start->r10 = regs->r10;
	start->r13 = regs->r13;
#elif defined(__TARGET_ARCH_arm64)
	start->pc = regs->pc;
	start->sp = regs->sp;
	start->fp = regs->regs[29];
	start->lr = regs->regs[30];
	start->r10 = 0;
	start->r13 = 0;
#endif
}

/* From what the current thread had in its registers when it entered the kernel:
 * at tracepoints, and at a clock that may have interrupted the kernel. */
static __always_inline void start_at_kernel_entry(struct walk_start *start)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());

	start_at_registers(start, regs);
}

#endif
