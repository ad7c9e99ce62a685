//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The Python walk and nothing else, for its tests and its benchmark: takes the
 * stack of whatever passes the probe, of what runs when the clock ticks, or at
 * the end of a system call, and sends it with the time that the walk took.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "guard.h"
#include "thread.h"
#include "python_maps.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct python_taken {
	struct walk_start start;
	__u64 walk_ns;
	struct python_stack stack;
};

struct python_workspace {
	struct python_scratch scratch;
	struct python_memory memory;
	struct python_taken taken;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16777216);
} taken SEC(".maps");

/* One for probes and tracepoints, one for the clock that interrupts them. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct python_workspace);
	__uint(max_entries, 2);
} workspaces SEC(".maps");

/* Stacks that did not fit in the ring. */
__u64 taken_lost SEC(".data.lost") = 0;

static __always_inline int take(__u32 workspace, __u64 sp)
{
	struct python_workspace *w = bpf_map_lookup_elem(&workspaces, &workspace);
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	__u64 began;

	if (!w || !bpf_map_lookup_elem(&python_runtimes, &tgid))
		return 0;
	start_in_thread(&w->taken.start);
	w->taken.start.sp = sp;
	began = bpf_ktime_get_ns();
	walk_python(&w->taken.start, &w->scratch, &w->memory, 0, &w->taken.stack);
	w->taken.walk_ns = bpf_ktime_get_ns() - began;
	if (bpf_ringbuf_output(&taken, &w->taken, sizeof(w->taken), 0))
		__sync_fetch_and_add(&taken_lost, 1);
	return 0;
}

static __noinline int take_at_probe(struct pt_regs *ctx)
{
	return take(0, ctx->sp);
}

SEC("uprobe.multi")
int python_at_probe(struct pt_regs *ctx)
{
	return GUARDED(take_at_probe(ctx));
}

SEC("perf_event")
int python_at_tick(void *ctx)
{
	return take(1, 0);
}

SEC("raw_tracepoint/sys_exit")
int python_at_syscall(void *ctx)
{
	return take(0, 0);
}

/* Keeps what no map holds in the BTF, where bpf2go finds it. */
const struct python_frame *wire_frame __attribute__((unused));
const struct python_segment *wire_segment __attribute__((unused));
const struct walk_start *wire_start __attribute__((unused));
const struct python_taken *wire_taken __attribute__((unused));
const enum python_outcome *wire_outcome __attribute__((unused));
const enum python_anchor *wire_anchor __attribute__((unused));
