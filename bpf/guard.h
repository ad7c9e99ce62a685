/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Programs on uprobes run preemptible since Linux 6.0, and since 6.13 on a
 * per-CPU private stack: two tasks that interleave there overwrite each other's
 * spilled pointers, which has panicked machines. So every body stands between
 * these two. The kfuncs exist since 6.10; below that the loader takes the calls
 * out of the program (bpf/guard.go).
 */
#ifndef EBPFPROF_GUARD_H
#define EBPFPROF_GUARD_H

extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;

#define GUARDED(call)				\
	({					\
		bpf_preempt_disable();		\
		call;				\
		bpf_preempt_enable();		\
		0;				\
	})

#endif
