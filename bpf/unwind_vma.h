/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Mappings that the loader has not told of yet: of a process that has just called exec,
 * or mapped a library. Where the kernel has bpf_find_vma (5.17), the file and the offset
 * come from the mapping itself, and the table from the file, if the loader knows it from
 * another process.
 *
 * A file is the one that the loader knows if device, inode, size and time of the last
 * change agree: who writes to a file changes the last, and nobody sets it. A file server
 * of the job's own may say what it likes of its files, which misleads the walks of those
 * who map them, and nobody else's.
 *
 * In an interrupt the kernel gives the lock on the mappings back after it: of each walk
 * there one look-up succeeds, at the most. So what was found is kept, for 16 mappings of
 * a process, until the loader has told of all.
 */
#ifndef EBPFPROF_UNWIND_VMA_H
#define EBPFPROF_UNWIND_VMA_H

#include "stack.h"
#include "unwind_maps.h"

#define CACHED_VMAS 16	/* of a process, a power of two */

/* Code of a file that has a number, as a process maps it. */
struct cached_vma {
	__u64 start;
	__u64 bytes;
	__u64 address;	/* of the file, at start */
	__u64 file;
};

struct vma_cache {
	__u64 count;	/* of all that were ever found */
	struct cached_vma vma[CACHED_VMAS];
};

/* Which file a mapping is of. */
struct unwind_inode {
	__u64 inode;
	__u64 device;	/* the kernel's dev_t */
};

/* What the loader knows of it. Its code is one segment. */
struct unwind_inode_file {
	__u64 size;
	__s64 changed;	/* seconds */
	__u64 changed_ns;
	__u64 offset;	/* from where on in the file its code is, rounded down to a page */
	__u64 end;	/* up to where */
	__u64 bias;	/* the file's own address of a byte, less its offset */
	__u64 file;	/* its number */
};

/* In map memory: what one look-up works with, and its result. */
struct vma_lookup {
	__u32 tgid;
	__u32 failed;	/* 1: there was one in this walk, without success */
	__u64 key;
	__u64 offset;	/* of start in the file */
	__u64 pointer;	/* the kernel's, to what is read next */
	__u32 mode;	/* of the kernel's file */
	__u32 pad;
	struct unwind_inode inode;
	struct unwind_inode_file is;	/* size and change */
	struct cached_vma found;
};

#if defined(__bpf__)
#include <bpf/bpf_core_read.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct unwind_inode);
	__type(value, struct unwind_inode_file);
	__uint(max_entries, UNWIND_FILES);
} unwind_inodes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, __u32);
	__type(value, struct vma_cache);
	__uint(max_entries, 1024);
} vma_caches SEC(".maps");

/* What the cache of a process begins with. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct vma_cache);
	__uint(max_entries, 1);
} empty_vma_cache SEC(".maps");

/* The time of an inode's last change has been in three places. */
struct inode___since_5_17 {
	struct timespec64 i_ctime;
} __attribute__((preserve_access_index));

struct inode___since_6_6 {
	struct timespec64 __i_ctime;
} __attribute__((preserve_access_index));

struct inode___since_6_11 {
	__s64 i_ctime_sec;
	__u32 i_ctime_nsec;
} __attribute__((preserve_access_index));

#define CTIME_QUERIED (1U << 31)	/* include/linux/fs.h, I_CTIME_QUERIED, since 6.13 */

/* Of stack there is hardly any left: what is read goes into map memory. */
#define READ_TO(place, from) bpf_core_read(&(place), sizeof(from), &(from))

/* As /proc/PID/maps names it: overlayfs maps another file than the one that was opened. */
static __always_inline struct inode *inode_of(struct vma_lookup *l)
{
	struct file *file = (void *)l->pointer;
	struct backing_file *backing = (void *)file;
	struct dentry *dentry;

	l->mode = 0;
	if (bpf_core_field_exists(backing->user_path))
		READ_TO(l->mode, file->f_mode);
	if (bpf_core_field_exists(backing->user_path) && l->mode & FILE_BACKING) {
		READ_TO(l->pointer, backing->user_path.dentry);
		dentry = (void *)l->pointer;
		READ_TO(l->pointer, dentry->d_inode);
	} else {
		READ_TO(l->pointer, file->f_inode);
	}
	return (void *)l->pointer;
}

static __always_inline void read_change(struct inode *inode, struct unwind_inode_file *to)
{
	struct inode___since_6_11 *newest = (void *)inode;
	struct inode___since_6_6 *newer = (void *)inode;
	struct inode___since_5_17 *old = (void *)inode;

	to->changed_ns = 0;
	if (bpf_core_field_exists(newest->i_ctime_sec)) {
		READ_TO(to->changed, newest->i_ctime_sec);
		READ_TO(to->changed_ns, newest->i_ctime_nsec);
		to->changed_ns &= ~CTIME_QUERIED;
	} else if (bpf_core_field_exists(newer->__i_ctime)) {
		READ_TO(to->changed, newer->__i_ctime.tv_sec);
		READ_TO(to->changed_ns, newer->__i_ctime.tv_nsec);
	} else {
		READ_TO(to->changed, old->i_ctime.tv_sec);
		READ_TO(to->changed_ns, old->i_ctime.tv_nsec);
	}
}

struct vma_request {
	struct vma_lookup *lookup;
};

/* The kernel holds the lock on the mappings. */
static long vma_found(struct task_struct *task, struct vm_area_struct *vma, struct vma_request *request)
{
	struct vma_lookup *l = request->lookup;
	struct super_block *fs;
	struct inode *inode;

	READ_TO(l->pointer, vma->vm_file);
	if (!l->pointer)
		return 0;
	READ_TO(l->found.start, vma->vm_start);
	READ_TO(l->found.bytes, vma->vm_end);
	l->found.bytes -= l->found.start;
	READ_TO(l->offset, vma->vm_pgoff);
	l->offset <<= 12;
	inode = inode_of(l);
	READ_TO(l->is.size, inode->i_size);
	read_change(inode, &l->is);
	READ_TO(l->pointer, inode->i_sb);
	fs = (void *)l->pointer;
	l->inode.device = 0;
	READ_TO(l->inode.device, fs->s_dev);
	READ_TO(l->inode.inode, inode->i_ino);
	return 0;
}

/* Whether the mapping is known from the walks before. */
static __always_inline bool vma_cached(struct vma_lookup *l, const struct vma_cache *c)
{
	__u64 at = 0;

#pragma unroll
	for (__u64 i = 0; i < CACHED_VMAS; i++) {
		const struct cached_vma *v = &c->vma[i];

		__u64 hit = at_most(((l->key - v->start) >> 12) + 1, v->bytes >> 12);

		at = (at & ~hit) | ((i + 1) & hit);
	}
	OPAQUE(at);
	if (!at)
		return false;
	l->found = c->vma[(at - 1) & (CACHED_VMAS - 1)];
	return true;
}

/* Keeps what was found, in the place of what was found first. */
static __always_inline void cache_vma(struct vma_lookup *l, struct vma_cache *c)
{
	__u64 at = __sync_fetch_and_add(&c->count, 1);
	struct cached_vma *v = &c->vma[at & (CACHED_VMAS - 1)];

	/* Another CPU may look meanwhile: what has no bytes is no mapping. */
	__sync_fetch_and_and(&v->bytes, 0);
	v->start = l->found.start;
	v->address = l->found.address;
	v->file = l->found.file;
	__sync_fetch_and_add(&v->bytes, l->found.bytes);
}

/* Of all maps: a key has to lie on the stack, where there is room for one. */
union vma_key {
	struct unwind_inode inode;
	__u32 number;
};

/* The cache of a process, which is made when it is asked for first. */
static __always_inline struct vma_cache *vma_cache(const struct vma_lookup *l, union vma_key *key)
{
	struct vma_cache *c, *empty;

	key->number = l->tgid;
	c = bpf_map_lookup_elem(&vma_caches, key);
	if (c)
		return c;
	key->number = 0;
	empty = bpf_map_lookup_elem(&empty_vma_cache, key);
	if (!empty)
		return 0;
	key->number = l->tgid;
	bpf_map_update_elem(&vma_caches, key, empty, BPF_NOEXIST);
	return bpf_map_lookup_elem(&vma_caches, key);
}

static __always_inline void forget_vmas(__u32 tgid)
{
	bpf_map_delete_elem(&vma_caches, &tgid);
}

/* Finds the mapping of the current process in which l->key is, for l->found; 1 if there is one. */
static __noinline int find_vma_at(struct vma_lookup *l)
{
	struct vma_request request = { .lookup = l };
	const struct unwind_inode_file *is;
	struct vma_cache *c;
	union vma_key key;
	__u64 from;

	if (!HAVE_FIND_VMA)
		return 0;
	c = vma_cache(l, &key);
	if (!c)
		return 0;
	if (vma_cached(l, c))
		return 1;
	if (l->failed)
		return 0;
	l->failed = 1;
	l->inode.inode = 0;
	if (bpf_find_vma(bpf_get_current_task_btf(), l->key, vma_found, &request, 0))
		return 0;
	key.inode = l->inode;
	is = bpf_map_lookup_elem(&unwind_inodes, &key);
	if (!is || is->size != l->is.size || is->changed != l->is.changed || is->changed_ns != l->is.changed_ns)
		return 0;
	from = l->offset + (l->key - l->found.start);
	if (from < is->offset || from >= is->end)
		return 0;
	l->found.address = l->offset + is->bias;
	l->found.file = is->file;
	l->failed = 0;
	cache_vma(l, c);
	return 1;
}
#else
static int find_vma_at(struct vma_lookup *l)
{
	(void)l;
	return 0;
}
#endif

#endif
