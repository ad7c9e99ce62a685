/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Looks at the code of files that a traced process maps, as it does. A program calls
 * functions of its libraries before the loader has heard of it, and an interrupt of the
 * clock may look for one of the mappings in a stack, at the most (unwind_vma.h): they
 * are looked for here, where that does not hold.
 */
#ifndef EBPFPROF_MAPPING_H
#define EBPFPROF_MAPPING_H

#include "unwind_vma.h"

#define PROT_EXEC 4	/* include/uapi/asm-generic/mman-common.h */

#if defined(__TARGET_ARCH_x86)
#define NR_MMAP 9
#define MMAP_BYTES(regs) ((regs)->si)
#define MMAP_PROT(regs) ((regs)->dx)
#define MMAP_FILE(regs) ((regs)->r8)
#else
#define NR_MMAP 222
#define MMAP_BYTES(regs) ((regs)->regs[1])
#define MMAP_PROT(regs) ((regs)->regs[2])
#define MMAP_FILE(regs) ((regs)->regs[4])
#endif

/* One for each CPU: the program at the end of system calls is not preempted. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct vma_lookup);
	__uint(max_entries, 1);
} mapping_lookups SEC(".maps");

/* Forgets what was mapped where something else is now. */
static __always_inline void uncache_vmas(__u32 tgid, __u64 from, __u64 bytes)
{
	struct vma_cache *c = bpf_map_lookup_elem(&vma_caches, &tgid);

	if (!c)
		return;
	for (__u64 i = 0; i < CACHED_VMAS; i++) {
		struct cached_vma *v = &c->vma[i];

		if (v->start < from + bytes && from < v->start + v->bytes)
			__sync_fetch_and_and(&v->bytes, 0);
	}
}

/* A system call has ended well that mapped something. */
static __noinline int see_mapping(const struct pt_regs *regs, __u64 address)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32, zero = 0;
	struct vma_lookup *l = bpf_map_lookup_elem(&mapping_lookups, &zero);

	if (!l || !(MMAP_PROT(regs) & PROT_EXEC) || (__s32)MMAP_FILE(regs) < 0 ||
	    !bpf_map_lookup_elem(&targets, &tgid) || !unwind_process(UNTOLD_PROCESS))
		return 0;
	uncache_vmas(tgid, address, MMAP_BYTES(regs));
	l->tgid = tgid;
	l->failed = 0;
	l->key = address;
	find_vma_at(l);
	return 0;
}

#endif
