//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The native walk and nothing else, for its tests and its benchmark: walks the
 * stack of whatever passes the probe and sends it with the time that it took.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "guard.h"
#include "unwind.h"
#include "walk_start.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct native_taken {
	struct walk_start start;
	__u64 walk_ns;
	struct native_stack stack;
};

struct native_workspace {
	struct native_scratch scratch;
	struct native_taken taken;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4194304);
} native_taken_ring SEC(".maps");

/* One for probes, one for the clock that interrupts them. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct native_workspace);
	__uint(max_entries, 2);
} native_workspaces SEC(".maps");

/* Stacks that did not fit in the ring. */
__u64 native_taken_lost SEC(".data.lost") = 0;

static __always_inline int take(struct native_workspace *w)
{
	__u64 began;

	w->taken.start.tgid = bpf_get_current_pid_tgid() >> 32;
	w->taken.start.tid = bpf_get_current_pid_tgid();
	began = bpf_ktime_get_ns();
	walk_native(&w->taken.start, 0, &w->scratch, &w->taken.stack);
	w->taken.walk_ns = bpf_ktime_get_ns() - began;
	if (bpf_ringbuf_output(&native_taken_ring, &w->taken, sizeof(w->taken), 0))
		__sync_fetch_and_add(&native_taken_lost, 1);
	return 0;
}

static __always_inline struct native_workspace *workspace(__u32 index)
{
	if (!unwind_process(bpf_get_current_pid_tgid() >> 32) && !unwind_process(UNTOLD_PROCESS))
		return 0;
	return bpf_map_lookup_elem(&native_workspaces, &index);
}

static __noinline int take_at_probe(struct pt_regs *ctx)
{
	struct native_workspace *w = workspace(0);

	if (!w)
		return 0;
	start_at_registers(&w->taken.start, ctx);
	return take(w);
}

SEC("uprobe.multi")
int native_at_probe(struct pt_regs *ctx)
{
	return GUARDED(take_at_probe(ctx));
}

/* A return probe that replaces an address on the stack, and does nothing else. */
SEC("uretprobe.multi")
int native_at_return(struct pt_regs *ctx)
{
	return 0;
}

SEC("perf_event")
int native_at_tick(void *ctx)
{
	struct native_workspace *w = workspace(1);

	if (!w)
		return 0;
	start_at_kernel_entry(&w->taken.start);
	return take(w);
}

/* Keeps what no map holds in the BTF, where bpf2go finds it. */
const struct native_taken *wire_native_taken __attribute__((unused));
const enum native_outcome *wire_native_outcome __attribute__((unused));
const enum native_flag *wire_native_flag __attribute__((unused));
const enum unwind_kind *wire_unwind_kind __attribute__((unused));
const enum unwind_register *wire_unwind_register __attribute__((unused));
const enum unwind_ra *wire_unwind_ra __attribute__((unused));
const enum unwind_fp *wire_unwind_fp __attribute__((unused));
const enum unwind_state *wire_unwind_state __attribute__((unused));
const enum unwind_process_flag *wire_unwind_process_flag __attribute__((unused));
