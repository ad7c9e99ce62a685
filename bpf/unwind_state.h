/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the native walk keeps from one frame to the next, and what it reads of its
 * thread. In user space the functions that end in _at come from the program that
 * includes it (testdata/native/walk.c).
 */
#ifndef EBPFPROF_UNWIND_STATE_H
#define EBPFPROF_UNWIND_STATE_H

#include "stack.h"
#include "trail.h"
#include "unwind_maps.h"
#include "unwind_vma.h"

/* A read of a thread's memory takes as long as two hundred instructions, however
 * little it reads: so much of the stack is read at once. */
#define STACK_WINDOW 2048
#define NO_WINDOW (~0ULL)

/* Room for the walk to work in: in map memory, where the verifier does not
 * follow each value that it could have. */
struct native_scratch {
	__u64 pc;
	__u64 lr;
	__u64 reg[UNWIND_REGISTERS];
	__u32 known;	/* 1 << unwind_register */
	__u32 flags;	/* of the frame that comes next */
	__u32 caller;	/* 1: pc is a return address, the call is before it */
	__u32 link;	/* 1: lr is the frame's own */
	__u64 instance;	/* the innermost return probe that was not met yet */
	__u32 instances;	/* 1: instance is valid */
	__u32 wanted;	/* 1: there was generated code that no table knows */
	__u32 mapping;	/* of the last frame; 0, which has no pages, at first */
	__u32 at_entry;	/* 1: the first frame was just entered */
	__u64 fp_word;	/* where the frame pointer was read; FP_AT_START, FP_ON_TRAIL */
	__u32 used;	/* registers of the start that mattered: 1 << unwind_register, USED_LINK */
	__u32 untold;	/* 1: the loader has not told of the process's mappings yet */
	__u32 untabled;	/* 1: its table does not have the frame's mapping */
	__u32 file;	/* of the frame */
	__u64 address;	/* in it */
	struct vma_lookup vma;
	__u64 context[17];	/* of an interrupted frame */
	__u64 window_at;	/* the address of the window's first byte; NO_WINDOW: it has none */
	__u64 window[STACK_WINDOW / 8];	/* a piece of the thread's stack */
	struct trail trail;
};

#if defined(__TARGET_ARCH_arm64)
/* Pointer authentication signs return addresses in the bits above; a process
 * gets addresses beyond 48 bits only if it asks for them. The page of probes it gets
 * at the end of what there can be: of that too these bits are compared. */
#define CODE_ADDRESS(pc) ((pc) & ((1ULL << 48) - 1))
#else
#define CODE_ADDRESS(pc) (pc)
#endif

#define USED_LINK (1U << 31)
#define FP_AT_START 0	/* nowhere: it is the register of the walk's start */
#define FP_ON_TRAIL 1	/* the trail has it already */

/* A return probe that is pending on the thread. */
struct pending_return {
	__u64 stack;	/* stack pointer at the function's entry */
	__u64 address;	/* what the return address was */
};

#if defined(__bpf__)
#include <bpf/bpf_core_read.h>

static __always_inline long read_user_at(void *to, __u32 size, __u64 address)
{
	return bpf_probe_read_user(to, size, (void *)address);
}

/* Whether the address is in the page that the kernel maps for uprobes: there
 * return probes return to, and there single steps run. */
static __always_inline bool in_probe_page_at(__u64 pc)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 page = BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);

	return page && (CODE_ADDRESS(pc) & ~4095ULL) == CODE_ADDRESS(page);
}

/* The address of the instruction that is being stepped over out of line. */
static __always_inline __u64 stepped_address_at(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, utask, vaddr);
}

static __always_inline bool next_return_at(struct native_scratch *s, struct pending_return *r)
{
	struct return_instance *instance = (void *)s->instance;

	if (!s->instances) {
		struct task_struct *task = (void *)bpf_get_current_task();

		s->instances = 1;
		instance = BPF_CORE_READ(task, utask, return_instances);
	}
	if (!instance)
		return false;
	r->stack = BPF_CORE_READ(instance, stack);
	r->address = BPF_CORE_READ(instance, orig_ret_vaddr);
	s->instance = (__u64)BPF_CORE_READ(instance, next);
	return true;
}
#else
static long read_user_at(void *to, __u32 size, __u64 address);
static bool in_probe_page_at(__u64 pc);
static __u64 stepped_address_at(void);
static bool next_return_at(struct native_scratch *s, struct pending_return *r);
#endif

#endif
