//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* What the loader tries a kernel with: programs that are loaded and never run. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "guard.h"
#include "verified.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

VERIFIED_ONCE int called(__u64 number)
{
	return bpf_get_prandom_u32() + number;
}

/* Whether a global function may be called where preemption is off. */
SEC("uprobe")
int guarded_call(struct pt_regs *ctx)
{
	return GUARDED(called(bpf_get_current_pid_tgid()));
}
