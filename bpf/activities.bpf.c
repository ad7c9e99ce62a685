//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Takes over what the library in a job hands over (internal/record/injection/cupti): each call of its empty function is
 * one chunk, which is copied as it is. Whoever has the library's file can call the function with anything: what is
 * copied has a bound, and what cannot be copied is counted.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "guard.h"
#include "regs.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define CHUNK_BYTES 8192	/* as in internal/record/injection/cupti/records.h */

struct activities {
	__u64 ts_ns;		/* CLOCK_MONOTONIC */
	__u64 sequence;		/* of the process's chunks */
	__u32 tgid;
	__u32 length;
	__u8 bytes[CHUNK_BYTES];
};

enum activity_count {
	ACTIVITY_TAKEN,
	ACTIVITY_LENGTH,	/* no chunk is so long */
	ACTIVITY_FULL,		/* the ring had no room */
	ACTIVITY_UNREADABLE,	/* nothing is at the address */
	ACTIVITY_COUNTS,
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} activity_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ACTIVITY_COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} activity_counts SEC(".maps");

static __always_inline void count(__u32 what)
{
	__u64 *n = bpf_map_lookup_elem(&activity_counts, &what);

	if (n)
		__sync_fetch_and_add(n, 1);
}

static __always_inline void take(struct pt_regs *ctx)
{
	__u64 arg[REGISTER_ARGS];
	struct activities *a;
	__u64 length;

	reg_args(ctx, arg);
	length = arg[1];
	if (!length || length > CHUNK_BYTES) {
		count(ACTIVITY_LENGTH);
		return;
	}
	a = bpf_ringbuf_reserve(&activity_ring, sizeof(*a), 0);
	if (!a) {
		count(ACTIVITY_FULL);
		return;
	}
	a->ts_ns = bpf_ktime_get_ns();
	a->sequence = arg[2];
	a->tgid = bpf_get_current_pid_tgid() >> 32;
	a->length = length;
	if (bpf_probe_read_user(a->bytes, length, (void *)arg[0])) {
		bpf_ringbuf_discard(a, 0);
		count(ACTIVITY_UNREADABLE);
		return;
	}
	bpf_ringbuf_submit(a, 0);
	count(ACTIVITY_TAKEN);
}

SEC("uprobe")
int take_activities(struct pt_regs *ctx)
{
	return GUARDED(take(ctx));
}

/* Keeps the wire types in the BTF, where bpf2go finds them. */
const struct activities *wire_activities __attribute__((unused));
const enum activity_count *wire_activity_count __attribute__((unused));
