/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#ifndef EBPFPROF_SAMPLE_RING_H
#define EBPFPROF_SAMPLE_RING_H

/* Samples, the frames of all stacks, and what threads have read and written. Apart from
 * the calls: a flood of one does not drown the other, and the clock's interrupt waits
 * for no probe's lock. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);	/* sized by the loader */
} samples SEC(".maps");

#endif
