/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the native walk looks up, and the maps that hold it. The loader fills
 * them (tracer/unwinding); every BPF object that walks shares them
 * (MapReplacements). The types also compile for user space.
 *
 * An address goes: process -> mapping -> file -> page -> row -> rule, or from the
 * row to a sequence of rules, which many functions have in common.
 *
 *	unwind_processes  where in the address space which file is mapped
 *	unwind_files      where the image of a file's table begins
 *	unwind_shards     the images: leaves of 4 KiB, numbered through all shards
 *	unwind_found      addresses whose rule was looked for, and that rule
 *	unwind_rules      how to find the caller, shared by all files
 *	unwind_inodes     which number a file has (unwind_vma.h)
 *	vma_caches        mappings that the loader has not told of yet (likewise)
 *	unwind_wanted     back to the loader: whose generated code is not known
 *
 * An image is a run of leaves. The first hold its pages, one every
 * 1 << page_bits bytes of the file's addresses; then come the rows of the pages,
 * never one page's in two leaves, and the sequences.
 */
#ifndef EBPFPROF_UNWIND_MAPS_H
#define EBPFPROF_UNWIND_MAPS_H

#define UNWIND_RULES 32768
#define UNWIND_FILES 4096
#define UNWIND_PROCESSES 4096
#define UNWIND_MAPPINGS 1024	/* of one process */
#define UNTOLD_PROCESS 0	/* the one without mappings, which stands for those that are not told of yet */
#define UNWIND_SHARDS 128
#define UNWIND_SHARD_BITS 9	/* 2 MiB: the kernel waits for all its programs at each new one */
#define UNWIND_SHARD_LEAVES (1 << UNWIND_SHARD_BITS)
#define UNWIND_LEAF_BYTES 4096
#define UNWIND_LEAF_ROWS (UNWIND_LEAF_BYTES / 4)
#define UNWIND_LEAF_PAGES (UNWIND_LEAF_BYTES / 8)
#define UNWIND_SEQUENCE 8	/* cells */
#define UNWIND_LEAF_SEQUENCES (UNWIND_LEAF_ROWS / UNWIND_SEQUENCE)
#define UNWIND_ROW_REACH (256 >> UNWIND_PC_SHIFT)
#define UNWIND_ONE_RULE 0x8000

#define UNWIND_FOUND 16384	/* a power of two */

/* Instructions of arm64 begin at multiples of 4. */
#if defined(__TARGET_ARCH_arm64)
#define UNWIND_PC_SHIFT 2
#else
#define UNWIND_PC_SHIFT 0
#endif

/* The registers that a frame address can come from. Those of realigned stacks
 * (gcc's DRAP) are known of the innermost frame and of an interrupted one. */
enum unwind_register {
	UNWIND_SP,
	UNWIND_FP,
	UNWIND_R10,
	UNWIND_R13,
	UNWIND_REGISTERS,
};

enum unwind_kind {
	RULE_NONE,	/* no description covers the address */
	RULE_OFFSET,	/* cfa = reg + cfa */
	RULE_DEREF,	/* cfa = *(reg + aux) + cfa */
	RULE_PLT,	/* cfa = sp + 8, 16 from the aux-th of 16 bytes on */
	RULE_SIGNAL,	/* the kernel's frame under a signal handler */
	RULE_REGISTER,	/* the frame address is in a register that is not followed */
	RULE_EXPRESSION,	/* only an interpreter of DWARF could follow it */
	RULE_INFERRED,	/* as RULE_OFFSET, or with aux as RULE_DEREF, read from the
			 * instructions: the file says nothing */
};

enum unwind_ra {
	RA_SAVED,	/* at cfa - 8; arm64: at cfa + aux */
	RA_LINK,	/* in the link register; on x86-64 in rdi, as vfork has it */
	RA_END,		/* undefined: the outermost frame */
};

enum unwind_fp {
	FP_SAME,
	FP_AT_CFA,	/* at cfa + fp */
	FP_AT_FP,	/* at the frame pointer + fp */
	FP_LOST,
};

struct unwind_rule {
	__u8 kind;
	__u8 reg;
	__u8 ra;
	__u8 fp_kind;
	__s32 cfa;
	__s32 fp;
	__s32 aux;
};

/* From where on a sequence of changes is, or one rule. */
struct unwind_row {
	__u16 pc;	/* from UNWIND_ROW_REACH before the page's start, >> UNWIND_PC_SHIFT */
	__u16 code;	/* number of a sequence, or a rule and UNWIND_ONE_RULE */
};

/* One change of a sequence. Those behind the last are where no code is. */
struct unwind_cell {
	__u16 pc;	/* from the row's, >> UNWIND_PC_SHIFT */
	__u16 rule;
};

/* The first row of a page begins where the page does, or before. */
struct unwind_page {
	__u32 leaf;	/* from the image's first */
	__u16 row;
	__u16 rows;	/* 0: none of the page is described */
};

enum unwind_state {
	FILE_NO_TABLE,	/* yet, or at all */
	FILE_READY,
	FILE_GENERATED,	/* the generated code of a process, whose rules are all inferred */
};

struct unwind_file {
	__u64 base;	/* address of page 0, before the loader's bias */
	__u32 leaf;	/* the image's first */
	__u32 pages;
	__u8 page_bits;
	__u8 state;
	__u16 generation;	/* of the table, no two have the same; 0: its rules are not cached */
	__u32 sequences;	/* their first leaf, from the image's first */
};

/* File numbers that are no file. */
#define UNWIND_NO_FILE 0
#define UNWIND_ANONYMOUS 1	/* executable memory that no file backs: generated code */
#define UNWIND_FIRST_FILE 2

struct unwind_mapping {
	__u32 file;
	__u32 page;	/* the file's address at its start, in units of 4 KiB */
	__u32 pages;	/* its length, likewise */
	__u32 pad;
};

enum unwind_process_flag {
	PROCESS_COMPAT = 1,	/* runs 32-bit code */
};

struct unwind_process {
	__u32 count;
	__u32 flags;
	__u64 start[UNWIND_MAPPINGS];	/* ascending; unused: the greatest s64 */
	struct unwind_mapping mapping[UNWIND_MAPPINGS];
};

_Static_assert(sizeof(struct unwind_rule) == 16, "rules are 16 bytes");
_Static_assert(sizeof(struct unwind_row) == 4, "rows are 4 bytes");
_Static_assert(sizeof(struct unwind_cell) == 4, "cells are 4 bytes");
_Static_assert(sizeof(struct unwind_page) == 8, "pages are 8 bytes");

/* Why a walk ended. */
enum native_outcome {
	NATIVE_GOES_ON,	/* never seen outside of the walk */
	NATIVE_END,	/* the thread's outermost frame */
	NATIVE_MAX_FRAMES,
	NATIVE_NO_PROCESS,	/* the process's mappings are not loaded */
	NATIVE_NO_MAPPING,	/* nothing executable is mapped at the address */
	NATIVE_NO_TABLE,	/* the file has no table (yet), and no frame pointers */
	NATIVE_NO_ROW,	/* the file's table does not cover the address */
	NATIVE_ANONYMOUS_CODE,	/* generated code without frame pointers */
	NATIVE_BAD_READ,	/* stack memory that could not be read */
	NATIVE_LOOP,	/* the frame address does not rise */
	NATIVE_EXPRESSION,	/* RULE_EXPRESSION */
	NATIVE_REGISTER,	/* a rule needs a register whose value was lost */
	NATIVE_RETURN_PROBE,	/* the address that a return probe replaced was not found */
	NATIVE_COMPAT,	/* 32-bit code */
	NATIVE_NOT_A_CALL,	/* what an inferred rule led to is no return address */
	NATIVE_OUTCOMES,
};

#if defined(__bpf__)
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct unwind_rule);
	__uint(max_entries, UNWIND_RULES);
} unwind_rules SEC(".maps");

/*
 * A job calls from the same places again and again. Each entry is one word, so
 * that it is never half another's: 16 bits of the table's generation, 32 of the
 * file's address, and the rule's number.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, UNWIND_FOUND);
} unwind_found SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct unwind_file);
	__uint(max_entries, UNWIND_FILES);
} unwind_files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);	/* 24 KiB a process */
	__type(key, __u32);
	__type(value, struct unwind_process);
	__uint(max_entries, UNWIND_PROCESSES);
} unwind_processes SEC(".maps");

struct unwind_shard {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, 4);
	__uint(value_size, UNWIND_LEAF_BYTES);
	__uint(max_entries, UNWIND_SHARD_LEAVES);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__type(key, __u32);
	__uint(max_entries, UNWIND_SHARDS);	/* made as they are needed */
	__array(values, struct unwind_shard);
} unwind_shards SEC(".maps");

/* How often each outcome was. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, NATIVE_OUTCOMES);
} native_outcomes SEC(".maps");

/* Processes in which walks met code that their tables do not know: generated
 * since they were made. The loader takes them out again. A full map costs
 * nothing but time, since each walk that ends has its outcome. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1024);
} unwind_wanted SEC(".maps");

/* Raised by the loader with each change of what walks look up. */
volatile __u32 memo_generation SEC(".data.memo") = 1;

static __always_inline __u32 walk_generation(void)
{
	return memo_generation;
}

static __always_inline const struct unwind_process *unwind_process(__u32 tgid)
{
	return bpf_map_lookup_elem(&unwind_processes, &tgid);
}

static __always_inline const struct unwind_file *unwind_file(__u32 file)
{
	return bpf_map_lookup_elem(&unwind_files, &file);
}

static __always_inline __u64 *unwind_found_at(__u32 index)
{
	return bpf_map_lookup_elem(&unwind_found, &index);
}

static __always_inline const struct unwind_rule *unwind_rule(__u32 rule)
{
	return bpf_map_lookup_elem(&unwind_rules, &rule);
}

static __always_inline const void *unwind_leaf(__u32 leaf)
{
	__u32 shard = leaf >> UNWIND_SHARD_BITS, index = leaf & (UNWIND_SHARD_LEAVES - 1);
	void *leaves = bpf_map_lookup_elem(&unwind_shards, &shard);

	if (!leaves)
		return 0;
	return bpf_map_lookup_elem(leaves, &index);
}

static __always_inline void want_process(__u32 tgid)
{
	__u32 one = 1;

	bpf_map_update_elem(&unwind_wanted, &tgid, &one, BPF_ANY);
}

static __always_inline void count_native_outcome(__u32 outcome)
{
	__u64 *n = bpf_map_lookup_elem(&native_outcomes, &outcome);

	if (n)
		(*n)++;
}
#else
static __u32 walk_generation(void);
static const struct unwind_process *unwind_process(__u32 tgid);
static const struct unwind_file *unwind_file(__u32 file);
static const struct unwind_rule *unwind_rule(__u32 rule);
static __u64 *unwind_found_at(__u32 index);
static const void *unwind_leaf(__u32 leaf);
static void want_process(__u32 tgid);
static void count_native_outcome(__u32 outcome);
#endif

#endif
