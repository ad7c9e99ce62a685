/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The few kernel types that the programs read, written by hand: only the
 * fields named here are relocated (CO-RE), so the objects do not depend on the
 * kernel of the machine that built them.
 */
#ifndef EBPFPROF_VMLINUX_H
#define EBPFPROF_VMLINUX_H

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef signed short __s16;
typedef unsigned int __u32;
typedef signed int __s32;
typedef unsigned long long __u64;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0

/* include/uapi/linux/bpf.h */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1,
	BPF_F_MMAPABLE = 1 << 10,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
};

/* include/uapi/linux/bpf.h */
struct bpf_raw_tracepoint_args {
	__u64 args[0];
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
	unsigned long long sum_sched_runtime;	/* of threads that have ended, ns */
};

/* kernel/events/uprobes.c: the page that every process with probes has */
struct xol_area {
	unsigned long vaddr;
};

struct uprobes_state {
	struct xol_area *xol_area;
};

struct mm_struct {
	struct uprobes_state uprobes_state;
	unsigned long start_code;
};

/* include/linux/uprobes.h: a return that is probed, and has not come yet */
struct return_instance {
	unsigned long stack;
	unsigned long orig_ret_vaddr;
	struct return_instance *next;
};

struct uprobe_task {
	struct return_instance *return_instances;
	unsigned long vaddr;	/* what is single-stepped out of line */
};

struct upid {
	int nr;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct thread_struct {
#if defined(__TARGET_ARCH_x86)
	unsigned long fsbase;
#elif defined(__TARGET_ARCH_arm64)
	struct {
		unsigned long tp_value;
	} uw;
#endif
};

struct thread_info {
	unsigned long flags;
	unsigned int status;
};

/* What a descriptor is of: include/linux/fdtable.h, fs.h, mount.h, fs/mount.h */
struct file_system_type {
	const char *name;
};

struct super_block {
	unsigned int s_dev;
	struct file_system_type *s_type;
};

struct dentry;

struct vfsmount {
	struct dentry *mnt_root;
	struct super_block *mnt_sb;
};

struct mount {
	struct vfsmount mnt;
	int mnt_id;
};

struct timespec64 {
	__s64 tv_sec;
	long tv_nsec;
};

struct inode {
	unsigned short i_mode;
	unsigned int i_generation;
	struct super_block *i_sb;
	unsigned long i_ino;
	__s64 i_size;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	unsigned int f_mode;
	struct path f_path;
	struct inode *f_inode;
};

/* fs/file_table.c: a struct file, and whose place it takes */
struct backing_file {
	struct path user_path;
};

#define FILE_BACKING (1U << 25)		/* include/linux/fs.h, FMODE_BACKING */

/* include/linux/mm_types.h: what is mapped */
struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

/* include/linux/sched.h, with CONFIG_SCHED_INFO */
struct sched_info {
	unsigned long long run_delay;	/* could run and did not, ns */
};

struct sched_entity {
	__u64 sum_exec_runtime;	/* ns */
};

/* include/linux/uidgid_types.h */
typedef struct {
	__u32 val;
} kuid_t;

#define UID_GID_MAP_MAX_BASE_EXTENTS 5

struct uid_gid_extent {
	__u32 first;
	__u32 lower_first;
	__u32 count;
};

struct uid_gid_map {
	struct uid_gid_extent extent[UID_GID_MAP_MAX_BASE_EXTENTS];
	__u32 nr_extents;
};

struct user_namespace {
	struct uid_gid_map uid_map;
	struct user_namespace *parent;
	int level;
	kuid_t owner;
};

struct cred {
	kuid_t uid;
	struct user_namespace *user_ns;
};

struct task_struct {
	struct thread_info thread_info;
	struct files_struct *files;
	unsigned int __state;
	int pid;
	int tgid;
	int exit_code;
	char comm[16];
	struct sched_entity se;
	__u64 start_boottime;	/* of the time since boot, as /proc/PID/stat says it in 1/100 s */
	struct task_struct *group_leader;
	struct signal_struct *signal;
	struct mm_struct *mm;
	struct uprobe_task *utask;
	struct pid *thread_pid;
	const struct cred *real_cred;
	struct sched_info sched_info;
	struct thread_struct thread;
};

/* include/linux/bpf.h, kernel/bpf/task_iter.c: what an iterator's program gets */
struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

/* include/uapi/linux/bpf.h: which helpers this kernel has */
enum bpf_func_id {
	BPF_FUNC_find_vma = 180,
	BPF_FUNC_loop = 181,
};

#if defined(__TARGET_ARCH_arm64)
/* arch/arm64/include/asm/ptrace.h: what the kernel's has beyond the user's */
struct pt_regs___kernel {
	int syscallno;
};
#endif

#pragma clang attribute pop

/* Set by a test, to load what kernels before 5.17 run. */
volatile const __u32 without_bpf_loop = 0;

#define HAVE_BPF_LOOP \
	(bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop) && !without_bpf_loop)

/* Likewise. */
volatile const __u32 without_find_vma = 0;

#define HAVE_FIND_VMA \
	(bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_find_vma) && !without_find_vma)

/* The user's registers at a probe: ABI, so fixed offsets and no relocation. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs { /* arch/x86/include/asm/ptrace.h */
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8;
	unsigned long ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs { /* arch/arm64/include/uapi/asm/ptrace.h: struct user_pt_regs */
	__u64 regs[31];
	__u64 sp, pc, pstate;
};
#endif

/* include/uapi/linux/bpf_perf_event.h; of arm64 the registers are user_pt_regs. */
struct bpf_perf_event_data {
	struct pt_regs regs;
	__u64 sample_period;
	__u64 addr;
};

#endif
