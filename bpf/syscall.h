/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which system call a thread is in. */
#ifndef EBPFPROF_SYSCALL_H
#define EBPFPROF_SYSCALL_H

#include <bpf/bpf_core_read.h>

/* The system call that entered the kernel with these registers, negative where it was none. */
static __always_inline __s32 syscall_number(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->orig_ax;
#elif defined(__TARGET_ARCH_arm64)
	struct pt_regs___kernel *kernel = (void *)regs;

	return BPF_CORE_READ(kernel, syscallno);
#endif
}

#endif
