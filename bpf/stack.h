/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * One captured call stack: what the two walks leave in map memory, and what
 * crosses to the loader. The walks are independent: each has its own frames,
 * its own outcome, and neither can spoil the other. User space merges them by
 * stack address. No BPF helper is used here, so that the header also compiles
 * for user space, where the walks run over recorded memory.
 */
#ifndef EBPFPROF_STACK_H
#define EBPFPROF_STACK_H

#include "verified.h"

/* Keeps compiler and verifier from telling values apart: a search that they
 * cannot follow is one state, not two to the number of its steps. */
#define OPAQUE(x) asm volatile("" : "+r"(x))

/* All ones if a <= b, else 0; no branch. Both below 1 << 63. */
static __always_inline __u64 at_most(__u64 a, __u64 b)
{
	__u64 d = a - b - 1;

	OPAQUE(d);
	return (__u64)((__s64)d >> 63);
}

/* 1 if a is b, else 0; no branch. */
static __always_inline __u64 same(__u64 a, __u64 b)
{
	__u64 d = (a ^ b) - 1;

	OPAQUE(d);
	return d >> 63;
}

/* Where one byte of it can be read, all can. */
#define SMALLEST_PAGE 4096

/* For so many there is room; walks are cut after max_frames. */
#define MAX_NATIVE_FRAMES 512	/* of a compiler written in Python, two in three are the interpreter's */
#define MAX_PYTHON_FRAMES 256
#define MAX_PYTHON_SEGMENTS 256	/* 3.10 has one for each frame */
#define MAX_KERNEL_FRAMES 64

/* Of each kind in one stack, set by the loader (--max-frames). What lies beyond is
 * left out, and the outcome says so. */
volatile const __u32 max_frames = 128;

static __always_inline __u32 max_python_frames(void)
{
	__u64 most = max_frames < MAX_PYTHON_FRAMES ? max_frames : MAX_PYTHON_FRAMES;

	/* A compiler that sees the bound leaves the mask out where a frame's place is
	 * found by the number below it, and Linux 6.1 can't follow that. */
	OPAQUE(most);
	return most;
}

/* Where a walk begins: the registers of the thread at the probe or sample. */
struct walk_start {
	__u64 pc;
	__u64 sp;
	__u64 fp;		/* rbp, x29 */
	__u64 lr;		/* x30; rdi, in which vfork keeps its return address */
	__u64 r10;		/* of x86-64: what functions that realign the stack reach */
	__u64 r13;		/* their frame by; unused on arm64 */
	__u64 thread_pointer;	/* fsbase, tpidr_el0 */
	__u32 tgid;
	__u32 tid;
	__u32 ns_tid;		/* tid in the thread's innermost pid namespace */
	__u32 at_entry;		/* 1: a function was just entered: sp is at its return address, or lr is that */
};

struct native_frame {
	__u64 pc;		/* of the leaf: the instruction; of the others: the return address */
	__u32 cfa;		/* canonical frame address less native_stack.sp; all ones: not known */
	__u32 flags;		/* enum native_flag */
};

enum native_flag {
	NATIVE_SIGNAL = 1,	/* pc is the interrupted instruction, no return address */
	NATIVE_FRAME_POINTER = 2,	/* found from the frame it called by frame pointer, not by table */
	NATIVE_REPAIRED = 4,	/* a pending return probe hid the return address */
	NATIVE_INFERRED = 8,	/* found from the frame it called by that one's instructions: no table describes them */
};

struct native_stack {
	__u64 sp;		/* stack pointer that the frames' cfa count from */
	__u32 count;
	__u32 outcome;		/* enum native_outcome, unwind.h */
	struct native_frame frame[MAX_NATIVE_FRAMES];	/* leaf first */
};

struct python_frame {
	__u64 code;		/* PyCodeObject */
	__u32 checksum;		/* of its invariant fields; 0: they could not be read */
	__s32 instruction;	/* index of the code unit, -1 before the first */
};

#define PYTHON_INSTRUCTION_UNKNOWN -2	/* the frame's pointer is not into its code */

/*
 * One run of the interpreter loop. anchor is an address inside the C frame that
 * executes it (the CFrame or the shim frame); 0 when the version has none.
 */
struct python_segment {
	__u64 anchor;
	__u32 end;		/* frames [end of the segment before, end) belong to it */
	__u32 pad;
};

struct python_stack {
	__u32 count;
	__u32 segments;
	__u32 outcome;		/* enum python_outcome, python.h */
	__u8 holds_gil;		/* 0 no, 1 yes, 2 not known */
	__u8 in_gc;		/* likewise */
	__u8 cold;		/* frames whose code object could not be read */
	__u8 entering;		/* the leaf was on its way into a frame, which is left out */
	struct python_frame frame[MAX_PYTHON_FRAMES];	/* leaf first */
	struct python_segment segment[MAX_PYTHON_SEGMENTS];
};

#endif
