/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A sample and its stack: of a thread that is in the kernel, or was when the clock struck.
 */
#ifndef EBPFPROF_SAMPLE_STACK_H
#define EBPFPROF_SAMPLE_STACK_H

#include "stacks.h"
#include "syscall.h"

/* The kernel's entry of breakpoints, from kallsyms; 0: not known. */
volatile __u64 breakpoint_text_start SEC(".data.samples") = 0;
volatile __u64 breakpoint_text_end SEC(".data.samples") = 0;

/* What the samples before looked up, of each context apart. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);	/* begins at a page */
	__type(key, __u32);
	__type(value, struct stack_cache);
	__uint(max_entries, WORKSPACES);	/* for each CPU: sized by the loader */
} walk_caches SEC(".maps");

/* Never null: the map has one for each context of each CPU. */
static __always_inline struct stack_cache *stack_cache(__u32 context)
{
	__u32 index = bpf_get_smp_processor_id() * WORKSPACES + context;

	return bpf_map_lookup_elem(&walk_caches, &index);
}

static __always_inline void emit_sample(const struct sample_record *from)
{
	struct sample_record *r = bpf_ringbuf_reserve(&samples, sizeof(*r), 0);

	if (!r) {
		lose(LOSS_SAMPLE_RING_FULL);
		return;
	}
	*r = *from;
	r->kind = RECORD_SAMPLE;
	r->cpu = bpf_get_smp_processor_id();
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

static __always_inline void kernel_frames(struct stack_workspace *w, void *ctx)
{
	long bytes = bpf_get_stack(ctx, w->kernel, sizeof(w->kernel), 0);

	if (bytes > 0)
		w->kernel_count = bytes / 8;
}

/*
 * Whether there is a program that the thread has called from. Before exec has mapped the
 * new one there is none any more, and none yet; nor has a thread one that is ending.
 */
static __always_inline bool in_a_program(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct mm_struct *mm = task->mm;

	return mm && BPF_CORE_READ(mm, start_code);
}

/* Takes the stack of a thread that is in the kernel, or was when the clock struck. */
static __always_inline __u64 sample_stack(struct stack_workspace *w, struct stack_cache *cache)
{
	if (in_a_program())
		return take_stack(w, cache);
	start_in_thread(&w->start);
	w->native.sp = w->start.sp;
	w->native.count = 0;
	w->native.outcome = NATIVE_END;
	w->python.count = 0;
	w->python.segments = 0;
	w->python.outcome = PYTHON_NO_INTERPRETER;
	w->python.holds_gil = PYTHON_NOT_KNOWN;
	w->python.in_gc = PYTHON_NOT_KNOWN;
	return name_stack(w);
}

/* The system call that a thread is in: what its first entry into the kernel was. */
static __always_inline __s32 syscall_of(struct task_struct *task)
{
	return syscall_number((void *)bpf_task_pt_regs(task));
}

/* Whether the clock's interrupt came while the thread ran code of its own. */
static __always_inline bool in_user_mode(const struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->cs & 3;
#elif defined(__TARGET_ARCH_arm64)
	return !(regs->pstate & 0xf);	/* EL0t */
#endif
}

/*
 * The breakpoint of a probe has been hit, and the kernel is on its way to see
 * whose it is: until it has, the thread stands behind the breakpoint, where an
 * instruction seems to be done that is not. Tables would lead astray from there.
 */
static __noinline int step_back(struct stack_workspace *w)
{
#if defined(__TARGET_ARCH_x86)
	__u32 last = w->kernel_count - 1;
	__u8 code[2];	/* before pc, at pc */
	__u64 entry;

	if (last >= MAX_KERNEL_FRAMES)
		return 0;
	entry = w->kernel[last & (MAX_KERNEL_FRAMES - 1)];
	if (entry < breakpoint_text_start || entry >= breakpoint_text_end)
		return 0;
	if (!bpf_probe_read_user(code, sizeof(code), (void *)(w->start.pc - 1)) &&
	    code[0] == 0xcc && code[1] != 0xcc)
		w->start.pc--;
#endif
	return 0;
}

#endif
