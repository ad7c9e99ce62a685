/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the job reads and writes: each system call that does, from its entry to its
 * exit. A call is counted with the others of its second and of its step by where it
 * began; one that was long has a record of its own as well.
 */
#ifndef EBPFPROF_IO_H
#define EBPFPROF_IO_H

#include "io_state.h"
#include "thread.h"

/* What a system call does. The first three, and a fault, are operations of a class. */
#define IO_READ 1
#define IO_WRITE 2
#define IO_SYNC 3
#define IO_SENDFILE 4	/* from its second descriptor to the first */
#define IO_COPY 5	/* from its first descriptor to the third argument */
#define IO_FAULT 4	/* a page of a mapping was not there, and had to be read */

#define IO_CALLS 512	/* a power of two */

static const volatile __u8 io_calls[IO_CALLS] = {
#if defined(__TARGET_ARCH_x86)
	[0] = IO_READ,		/* read */
	[1] = IO_WRITE,		/* write */
	[17] = IO_READ,		/* pread64 */
	[18] = IO_WRITE,	/* pwrite64 */
	[19] = IO_READ,		/* readv */
	[20] = IO_WRITE,	/* writev */
	[40] = IO_SENDFILE,	/* sendfile */
	[44] = IO_WRITE,	/* sendto */
	[45] = IO_READ,		/* recvfrom */
	[46] = IO_WRITE,	/* sendmsg */
	[47] = IO_READ,		/* recvmsg */
	[74] = IO_SYNC,		/* fsync */
	[75] = IO_SYNC,		/* fdatasync */
	[275] = IO_COPY,	/* splice */
	[295] = IO_READ,	/* preadv */
	[296] = IO_WRITE,	/* pwritev */
	[326] = IO_COPY,	/* copy_file_range */
	[327] = IO_READ,	/* preadv2 */
	[328] = IO_WRITE,	/* pwritev2 */
#elif defined(__TARGET_ARCH_arm64)
	[63] = IO_READ,		/* read */
	[64] = IO_WRITE,	/* write */
	[65] = IO_READ,		/* readv */
	[66] = IO_WRITE,	/* writev */
	[67] = IO_READ,		/* pread64 */
	[68] = IO_WRITE,	/* pwrite64 */
	[69] = IO_READ,		/* preadv */
	[70] = IO_WRITE,	/* pwritev */
	[71] = IO_SENDFILE,	/* sendfile */
	[76] = IO_COPY,		/* splice */
	[82] = IO_SYNC,		/* fsync */
	[83] = IO_SYNC,		/* fdatasync */
	[206] = IO_WRITE,	/* sendto */
	[207] = IO_READ,	/* recvfrom */
	[211] = IO_WRITE,	/* sendmsg */
	[212] = IO_READ,	/* recvmsg */
	[285] = IO_COPY,	/* copy_file_range */
	[286] = IO_READ,	/* preadv2 */
	[287] = IO_WRITE,	/* pwritev2 */
#endif
};

/* Whether this part is wanted; without it the verifier takes its code out. */
const volatile __u32 take_io = 0;
/* Whether each file has a place of its own, and its path is sent. */
const volatile __u32 take_paths = 0;
/* How long a call must have lasted to have a record of its own. */
const volatile __u64 long_io_ns = 1000000;
/* What measuring a call costs, and how much of a thread's time that may be, in 1,024ths;
 * 0: as much as it likes. */
const volatile __u64 io_price_ns = 0;
const volatile __u64 io_share = 0;
/* What passing one by costs. */
const volatile __u64 io_passed_ns = 0;
/* And what a file costs whose path is sent. */
const volatile __u64 io_path_ns = 0;
/* A thread may save up what the budget has room for in so long. */
#define IO_CREDIT_NS 4000000000ULL
/* And one that has none left is looked at again every so many calls. */
#define IO_PASSED_LOOK 64
/* The sums are sent once in a second, and for a step of the job that begins meanwhile,
 * but not sooner than this after the last time. */
#define IO_SECOND_NS 1000000000ULL
#define IO_LEAST_NS 2000000ULL

/* include/uapi/asm-generic/errno.h, include/linux/errno.h */
#define MAX_ERRNO 4095
#define ERESTARTSYS 512
#define ERESTART_RESTARTBLOCK 516

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct io_thread);
	__uint(max_entries, 1);
} blank_io SEC(".maps");

static __always_inline __u8 io_call(__u64 number)
{
	return number < IO_CALLS ? io_calls[number & (IO_CALLS - 1)] : 0;
}

/* Those of a program of 32 bits have other numbers. */
static __always_inline bool compat_call(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return task->thread_info.status & 0x2;	/* TS_COMPAT */
#elif defined(__TARGET_ARCH_arm64)
	return task->thread_info.flags & (1 << 22);	/* TIF_32BIT */
#endif
}

static __noinline struct io_thread *new_io_thread(__u32 tgid, __u32 tid)
{
	struct target *target = bpf_map_lookup_elem(&targets, &tgid);
	struct io_thread *blank, *t;
	__u32 zero = 0, user;

	if (!target)
		return 0;
	user = current_user();
	if (target->io >= PROCESS_IO || !share_left(user, SHARE_IO, USER_IO)) {
		refuse(user, tgid, SHARE_IO, LOSS_IO_QUOTA);
		return 0;
	}
	forget_io(tid);	/* its number was another's */
	blank = bpf_map_lookup_elem(&blank_io, &zero);
	if (!blank)
		return 0;
	if (!bpf_map_update_elem(&io_threads, &tid, blank, BPF_NOEXIST)) {
		__sync_fetch_and_add(&target->io, 1);
		take_share(user, SHARE_IO);
	}
	t = bpf_map_lookup_elem(&io_threads, &tid);
	if (!t) {
		refuse(user, tgid, SHARE_IO, LOSS_IO_TABLE_FULL);
		return 0;
	}
	t->tgid = tgid;
	t->user = user;
	t->born_ns = bpf_ktime_get_ns();
	t->paid_ns = t->born_ns;
	/* As a thread of calls has its own (call.bpf.c). */
	t->next_span = (__sync_fetch_and_add(&threads_seen, 1) + 1) << 40;
	return t;
}

/* include/uapi/linux/stat.h, >> 12 */
#define TYPE_CHARACTER_DEVICE 2
#define TYPE_BLOCK_DEVICE 6
#define TYPE_FILE 8

static __always_inline bool has_path(__u32 type)
{
	return take_paths && (type == TYPE_FILE || type == TYPE_CHARACTER_DEVICE || type == TYPE_BLOCK_DEVICE);
}

#define MIX(key, with) (((key) ^ (with)) * 0x9e3779b97f4a7c15ULL)

/*
 * What a kind of calls has in common. The pointer's highest byte is all ones. Where each
 * file is a kind, its name may be another's soon: the kernel uses the memory of names
 * again, and file systems the numbers of files.
 */
static __always_inline __u64 io_key(struct io_thread *t, __u32 operation)
{
	struct inode *inode = (void *)t->sought.inode;
	__u64 of = t->sought.vfsmount;

	if (has_path(t->sought.type)) {
		of = MIX(of, t->sought.dentry);
		of = MIX(of, BPF_CORE_READ(inode, i_ino));
		of = MIX(of, BPF_CORE_READ(inode, i_generation));
		of ^= of >> 32;
	}
	return of << 8 | t->sought.type << 4 | operation;
}

VERIFIED_ONCE int name_mount(struct io_slot *s, __u64 vfsmount)
{
	struct vfsmount *mount = (void *)vfsmount;
	struct super_block *super;
	const char *name;

	if (!s || !mount)
		return 0;
	super = BPF_CORE_READ(mount, mnt_sb);
	s->class.mount = BPF_CORE_READ((struct mount *)((char *)mount - bpf_core_field_offset(struct mount, mnt)), mnt_id);
	s->class.device = BPF_CORE_READ(super, s_dev);
	name = BPF_CORE_READ(super, s_type, name);
	bpf_probe_read_kernel_str(s->class.system, sizeof(s->class.system), name);
	return 0;
}

/* Sends the names from a file up to the root of its mount: what is beyond is known there. */
VERIFIED_ONCE int send_path(struct io_thread *t, __u32 slot, __u32 tid)
{
	struct io_path_record *r;
	struct vfsmount *mount;
	struct dentry *at, *root;
	const unsigned char *name;
	__u32 bytes = 0;
	long n;

	if (!t)
		return 0;
	r = bpf_ringbuf_reserve(&samples, sizeof(*r), 0);
	if (!r) {
		lose(LOSS_SAMPLE_RING_FULL);
		return 0;
	}
	mount = (void *)t->sought.vfsmount;
	at = (void *)t->sought.dentry;
	root = BPF_CORE_READ(mount, mnt_root);
	r->kind = RECORD_IO_PATH;
	r->whole = 0;
	r->slot = slot;
	r->generation = t->slots[slot & (IO_SLOTS - 1)].generation;
	r->tgid = t->tgid;
	r->tid = tid;
	r->born_ns = t->born_ns;
	r->pad = 0;
	for (int i = 0; i < IO_PATH_DEPTH; i++) {
		if (at == root) {
			r->whole = 1;
			break;
		}
		if (bytes >= IO_PATH_BYTES)
			break;
		name = BPF_CORE_READ(at, d_name.name);
		n = bpf_probe_read_kernel_str(r->names + bytes, IO_NAME_BYTES, name);
		if (n <= 1)
			break;
		bytes += n;
		at = BPF_CORE_READ(at, d_parent);
	}
	r->bytes = bytes;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Whether a place is that of a kind of calls, or could be. What is found is kept with the
 * thread: in map memory the verifier does not tell the ways to it apart. */
VERIFIED_ONCE int look_at_slot(struct io_thread *t, __u32 index, __u64 key)
{
	struct io_slot *s;

	if (!t)
		return 0;
	s = &t->slots[index & (IO_SLOTS - 1)];
	if (s->key == key)
		t->own = index;
	else if (!s->key)
		t->unused = index;
	else if (!s->dirty && index != t->second && index != t->slot)
		t->sent = index;	/* all of it: it can be another's */
	return 0;
}

/* Where a file has no place: what is known of another is sent before its time. */
VERIFIED_ONCE int make_room(struct io_thread *t, __u32 tid)
{
	__u32 index;

	if (!t)
		return 0;
	for (int i = 0; i < 3; i++) {	/* two are of the call that the thread is in */
		index = t->victim++ % (IO_SLOTS - 1);
		if (index == t->slot || index == t->second)
			continue;
		if (!flush_slot(t, index, tid))
			t->sent = index;
		return 0;
	}
	return 0;
}

/* The place of a kind of calls among a thread's. */
VERIFIED_ONCE __u32 find_slot(struct io_thread *t, __u32 operation, __u32 tid)
{
	struct io_slot *s;
	__u32 place;
	__u64 key;

	if (!t)
		return 0;
	key = t->sought.key;
	t->own = t->unused = IO_SLOTS;
	t->sent = IO_SLOTS - 1;
	for (__u32 i = 0; i < IO_SLOTS - 1; i++)
		look_at_slot(t, i, key);
	if (t->own < IO_SLOTS)
		return t->own;
	if (has_path(t->sought.type) && t->unused == IO_SLOTS && t->sent == IO_SLOTS - 1)
		make_room(t, tid);
	place = t->unused < IO_SLOTS ? t->unused : t->sent;
	s = &t->slots[place & (IO_SLOTS - 1)];
	if (place >= IO_SLOTS - 1) {
		s->class.type = IO_SEVERAL;
		return IO_SLOTS - 1;
	}
	__builtin_memset(&s->class, 0, sizeof(s->class));
	__builtin_memset(&s->sums, 0, sizeof(s->sums));
	s->key = key;
	s->generation++;
	s->class.type = t->sought.type;
	s->class.operation = operation;
	name_mount(s, t->sought.vfsmount);
	if (has_path(t->sought.type)) {
		send_path(t, place, tid);
		t->debt_ns += io_path_ns;
	}
	return place;
}

/* What a file is, to look for its place. */
static __always_inline void look_at_file(struct io_thread *t, struct file *file)
{
	struct backing_file *backing = (void *)file;
	struct inode *inode;
	__u16 mode = 0;

	if (!file)
		return;
	/* overlayfs maps another file than the one that was opened. */
	t->sought.mode = 0;
	if (bpf_core_field_exists(backing->user_path))
		t->sought.mode = BPF_CORE_READ(file, f_mode);
	if (bpf_core_field_exists(backing->user_path) && t->sought.mode & FILE_BACKING) {
		t->sought.vfsmount = (__u64)BPF_CORE_READ(backing, user_path.mnt);
		t->sought.dentry = (__u64)BPF_CORE_READ(backing, user_path.dentry);
		t->sought.inode = (__u64)BPF_CORE_READ(backing, user_path.dentry, d_inode);
	} else {
		t->sought.vfsmount = (__u64)BPF_CORE_READ(file, f_path.mnt);
		t->sought.dentry = (__u64)BPF_CORE_READ(file, f_path.dentry);
		t->sought.inode = (__u64)BPF_CORE_READ(file, f_inode);
	}
	inode = (void *)t->sought.inode;
	mode = BPF_CORE_READ(inode, i_mode);
	t->sought.type = mode >> 12;
}

/* What a descriptor is of, as the call finds it. */
VERIFIED_ONCE __u32 slot_of(struct io_thread *t, __u32 fd, __u32 operation, __u32 tid)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct files_struct *files;
	struct fdtable *table;
	struct file *file = 0;
	__u32 last;

	if (!t)
		return 0;
	files = task->files;
	table = files ? files->fdt : 0;
	if (table && fd < table->max_fds)
		bpf_probe_read_kernel(&file, sizeof(file), table->fd + fd);
	t->sought.type = 0;
	t->sought.vfsmount = 0;
	look_at_file(t, file);
	t->sought.key = io_key(t, operation);
	last = t->last[operation & 3] & (IO_SLOTS - 1);
	if (t->slots[last].key == t->sought.key)
		return last;
	last = find_slot(t, operation, tid);
	t->last[operation & 3] = last;
	return last;
}

#if defined(__TARGET_ARCH_x86)
#define IO_ARGUMENT(regs, n) ((n) == 0 ? (regs)->di : (n) == 1 ? (regs)->si : (regs)->dx)
#elif defined(__TARGET_ARCH_arm64)
#define IO_ARGUMENT(regs, n) ((regs)->regs[n])
#endif

static __always_inline struct io_thread *io_thread_of(__u32 tgid, __u32 tid)
{
	struct io_thread *t = bpf_map_lookup_elem(&io_threads, &tid);

	return t && t->tgid == tgid ? t : new_io_thread(tgid, tid);
}

static __always_inline void begin_io(struct pt_regs *regs, __u64 number)
{
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 tgid = ids >> 32, tid = ids, fd = IO_ARGUMENT(regs, 0);
	__u8 call = io_call(number);
	struct io_thread *t;

	if (!call || !maybe_target(tgid))
		return;
	t = io_thread_of(tgid, tid);
	if (!t)
		return;
	if (t->left_out || !recording || compat_call(bpf_get_current_task_btf()))
		return;
	t->second = IO_SLOTS;
	switch (call) {
	case IO_SENDFILE:
		t->second = slot_of(t, fd, IO_WRITE, tid);
		fd = IO_ARGUMENT(regs, 1);
		call = IO_READ;
		break;
	case IO_COPY:
		t->second = slot_of(t, IO_ARGUMENT(regs, 2), IO_WRITE, tid);
		call = IO_READ;
		break;
	}
	t->slot = slot_of(t, fd, call, tid);
	t->start_ns = bpf_ktime_get_ns();
}

/* Sends the sums before a call that is in another second, or step, than they. */
static __always_inline void cut_io(struct io_thread *t, __u32 tid, __u64 start)
{
	__u64 step = step_ns;

	if (start < t->until_ns &&
	    !(step > t->began_ns && step <= start && start - t->began_ns >= IO_LEAST_NS))
		return;
	flush_io(t, tid);
	t->began_ns = start;
	t->until_ns = start - start % IO_SECOND_NS + IO_SECOND_NS;
}

/* How a call ended. */
struct io_ending {
	__u64 now;
	__u64 waited;	/* how long the thread was off the CPU for it */
	__s64 result;
	__s32 number;
	__u32 tid;
};

static __always_inline void add_io(struct io_slot *s, struct io_thread *t, const struct io_ending *e)
{
	__s64 result = e->result;

	if (!s->dirty)
		s->first_ns = t->start_ns;
	s->dirty = 1;
	s->last_ns = e->now;
	/* A signal came: the call begins again, or the job is told. */
	if (result <= -ERESTARTSYS && result >= -ERESTART_RESTARTBLOCK)
		return;
	s->sums.calls++;
	if (result < 0 && result >= -MAX_ERRNO)
		s->sums.failed++;
	else
		s->sums.bytes += result;
}

/* What measuring has cost a thread, and whether the budget goes on having room for it. */
static __always_inline void charge_io(struct io_thread *t, __u32 tid, __u64 now, __u64 price)
{
	__u64 paid, most = IO_CREDIT_NS * io_share >> 10;

	if (!io_share)
		return;
	paid = (now - t->paid_ns) * io_share >> 10;
	t->paid_ns = now;
	t->debt_ns = (t->debt_ns > paid ? t->debt_ns - paid : 0) + price;
	if (t->left_out && t->debt_ns > 2 * most) {	/* even that is too much */
		t->debt_ns = most;
		send_io(t, 0, tid, IO_GIVEN_UP);
		return;
	}
	if (t->left_out ? t->debt_ns > most / 4 : t->debt_ns <= most)
		return;
	t->left_out = !t->left_out;
	send_io(t, 0, tid, t->left_out ? IO_LEFT_OUT : IO_TAKEN_IN);
}

VERIFIED_ONCE int send_long_io(struct io_thread *t, const struct io_ending *e)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	struct io_call_record *r;

	if (!t || !e)
		return 0;
	r = bpf_ringbuf_reserve(&samples, sizeof(*r), 0);
	if (!r) {
		lose(LOSS_SAMPLE_RING_FULL);
		return 0;
	}
	__builtin_memset(r, 0, sizeof(*r));
	r->kind = RECORD_IO_CALL;
	r->syscall = e->number;
	r->tgid = t->tgid;
	r->tid = e->tid;
	r->span_id = ++t->next_span;
	r->start_ns = t->start_ns;
	r->end_ns = e->now;
	r->waited_ns = e->waited;
	r->result = e->result;
	r->class = t->slots[t->slot & (IO_SLOTS - 1)].class;
	r->slot = t->slot;
	r->generation = t->slots[t->slot & (IO_SLOTS - 1)].generation;
	r->born_ns = t->born_ns;
	r->parent_id = span_at(e->tid, t->tgid, REG_SP(regs));
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline void end_io(struct io_ending *e)
{
	struct io_thread *t;
	struct io_slot *s;
	__u64 took;

	if (!io_call(e->number))
		return;
	t = bpf_map_lookup_elem(&io_threads, &e->tid);
	if (!t)
		return;
	if (!t->start_ns) {
		if (t->left_out) {
			/* The clock is not read for each: they are to cost little. */
			if (++t->passed % IO_PASSED_LOOK == 0)
				charge_io(t, e->tid, bpf_ktime_get_ns(), IO_PASSED_LOOK * io_passed_ns);
		}
		return;
	}
	e->now = bpf_ktime_get_ns();
	took = e->now - t->start_ns;
	cut_io(t, e->tid, t->start_ns);
	s = &t->slots[t->slot & (IO_SLOTS - 1)];
	add_io(s, t, e);
	s->sums.ns += took;
	s->sums.waited_ns += e->waited;
	if (t->second < IO_SLOTS)
		add_io(&t->slots[t->second & (IO_SLOTS - 1)], t, e);
	if (took >= long_io_ns)
		send_long_io(t, e);
	t->start_ns = 0;
	charge_io(t, e->tid, e->now, io_price_ns);
}

struct io_mapping {
	struct io_thread *thread;
};

/* The kernel holds the lock on the mappings. */
static long mapping_found(struct task_struct *task, struct vm_area_struct *vma, struct io_mapping *m)
{
	struct file *file = BPF_CORE_READ(vma, vm_file);

	m->thread->sought.type = IO_MEMORY;
	look_at_file(m->thread, file);
	return 0;
}

/*
 * A major fault is over: a page came from a file, or from swap. What it is of the mapping
 * says, where the kernel lets it be looked up (5.17). When it began nobody has seen.
 */
static __always_inline void count_fault(__u64 address, __u64 waited)
{
	__u64 ids = bpf_get_current_pid_tgid(), now;
	__u32 tgid = ids >> 32, tid = ids, place;
	struct io_mapping m;
	struct io_thread *t;
	struct io_slot *s;

	t = io_thread_of(tgid, tid);
	if (!t)
		return;
	t->sought.type = 0;
	t->sought.vfsmount = 0;
	m.thread = t;
	if (HAVE_FIND_VMA)
		bpf_find_vma(bpf_get_current_task_btf(), address, mapping_found, &m, 0);
	now = bpf_ktime_get_ns();
	cut_io(t, tid, now);
	t->sought.key = io_key(t, IO_FAULT);
	place = find_slot(t, IO_FAULT, tid);
	OPAQUE(place);	/* the compiler knows the function, the verifier does not */
	s = &t->slots[place & (IO_SLOTS - 1)];
	if (!s->dirty)
		s->first_ns = now;
	s->dirty = 1;
	s->last_ns = now;
	s->sums.calls++;
	s->sums.waited_ns += waited;
}

#endif
