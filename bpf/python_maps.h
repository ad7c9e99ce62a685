/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The kernel side of the Python walk: its maps, shared by all objects that take
 * stacks, and walk_python, which they call.
 */
#ifndef EBPFPROF_PYTHON_MAPS_H
#define EBPFPROF_PYTHON_MAPS_H

#include "python.h"

/* How walks ended, and enum python_outcome's other counts. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, PYTHON_COUNTERS);
} python_counts SEC(".maps");

static __always_inline void python_count(__u32 what, __u64 times)
{
	__u64 *n = bpf_map_lookup_elem(&python_counts, &what);

	if (n)
		__sync_fetch_and_add(n, times);
}

/*
 * Fills stack with the Python frames of the current thread, in enum
 * python_outcome's words how far that went. start needs thread_pointer, tgid and
 * ns_tid, and sp to read less often. The memory behind scratch, memory and stack must
 * be this program's alone until it ends: a sample may interrupt a probe, so each needs
 * its own; cache, which may be null, is what stays for the walks after it.
 */
static __noinline int walk_python(const struct walk_start *start, struct python_scratch *scratch,
				  struct python_memory *memory, struct python_cache *cache,
				  struct python_stack *stack)
{
	__u32 tgid = start->tgid;
	struct python_runtime *rt = bpf_map_lookup_elem(&python_runtimes, &tgid);
	int outcome = PYTHON_NO_INTERPRETER;

	stack->count = 0;
	stack->segments = 0;
	stack->cold = 0;
	stack->entering = 0;
	stack->holds_gil = PYTHON_NOT_KNOWN;
	stack->in_gc = PYTHON_NOT_KNOWN;
	memory->checked = 0;
	memory->differed = 0;
	trail_begin(&scratch->trail);
	if (rt)
		outcome = python_walk(rt, start, scratch, memory, cache, stack);
	stack->outcome = outcome;
	python_count(outcome, 1);
	if (stack->cold)
		python_count(PYTHON_COLD_CODE, stack->cold);
	if (stack->entering)
		python_count(PYTHON_ENTERING, 1);
	if (memory->checked)
		python_count(PYTHON_CODE_CHECKED, memory->checked);
	if (memory->differed)
		python_count(PYTHON_CODE_DIFFERED, memory->differed);
	return outcome;
}

#endif
