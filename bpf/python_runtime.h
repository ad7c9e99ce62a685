/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the loader tells the kernel of a process's CPython, and the kernel the
 * loader of its walks. */
#ifndef EBPFPROF_PYTHON_RUNTIME_H
#define EBPFPROF_PYTHON_RUNTIME_H

/* How a walk ended, and below that what else is counted of it. */
enum python_outcome {
	PYTHON_OK,		/* down to the thread's first Python frame */
	PYTHON_NO_INTERPRETER,	/* the process has no CPython that the loader knows */
	PYTHON_NOT_INITIALISED,	/* it has, but not yet or no longer initialised */
	PYTHON_NO_THREAD_STATE,	/* a thread that never ran Python */
	PYTHON_NO_FRAMES,	/* a thread state, but no Python is running: not a failure */
	PYTHON_BAD_SLOT,	/* the thread's slot could not be read */
	PYTHON_BAD_STATE,	/* the thread state could not be read */
	PYTHON_FOREIGN_STATE,	/* what the slot holds is not the state of this thread */
	PYTHON_BAD_FRAME,	/* a frame could not be read, or is none: what is above it is kept */
	PYTHON_BAD_ANCHOR,	/* a C frame's link could not be read: likewise */
	PYTHON_MAX_FRAMES,	/* cut after max_frames */
	PYTHON_LOOP,		/* the list of frames runs in a circle */
	PYTHON_OUTCOMES,

	/* Counted, but no end of a walk. */
	PYTHON_COLD_CODE = PYTHON_OUTCOMES,	/* a code object was not resident: checksum 0 */
	PYTHON_ENTERING,	/* the leaf was on its way into a frame, which is left out */
	PYTHON_CODE_CHECKED,	/* a code object that was known was read all the same */
	PYTHON_CODE_DIFFERED,	/* of those: another one was there */
	PYTHON_COUNTERS,
};

/* What ties a run of Python frames to the C frame that executes it. */
enum python_anchor {
	PYTHON_ANCHOR_NONE,	/* 3.8, 3.9: nothing; one C frame a Python frame */
	PYTHON_ANCHOR_EACH,	/* 3.10: a CFrame for each Python frame */
	PYTHON_ANCHOR_ENTRY,	/* 3.11: a CFrame for each frame marked is_entry */
	PYTHON_ANCHOR_SHIM,	/* 3.12+: a frame of the interpreter's own, on the C stack */
};

#define PYTHON_ABSENT 0xffff	/* an offset of a field that the version has not */

/*
 * Where things are in one process; the offsets come from symbolize/cpython.
 * Those of a thread state, frame and code object are below 252.
 */
struct python_runtime {
	__u64 autotss;		/* address of {int initialised; pthread_key_t key}; 0: key below */
	__u64 interpreters;	/* address of the pointer to the first PyInterpreterState */
	__u64 interpreter;	/* the main one */
	__u64 gil;		/* address of the main one's {last_holder, locked}, 0: not known */
	__u64 collecting;	/* address of the main one's gc.collecting, 0: not known */
	__u64 code_type;	/* address of PyCode_Type, 0: not known */

	/* The C library's struct pthread, counted from the thread pointer. */
	__s32 thread_self;	/* what pthread_self returns */
	__s32 key_block;	/* the values of the first 32 keys, 16 bytes each */
	__s32 key_table;	/* pointers to the blocks of 32; of musl the pointer to all values */

	__u16 interpreter_next;
	__u16 state_interpreter;
	__u16 state_frames;	/* the running frame; of 3.11 and 3.12 the CFrame */
	__u16 state_cframe;	/* 3.10 */
	__u16 state_thread;	/* pthread_self */
	__u16 state_native;	/* the kernel's thread id, 3.11+ */
	__u16 cframe_current;	/* 3.11, 3.12 */
	__u16 cframe_previous;
	__u16 frame_bytes;	/* how much of a frame to read: no more than surely exists */
	__u16 frame_code;
	__u16 frame_previous;
	__u16 frame_instruction;
	__u16 frame_owner;	/* of 3.11 is_entry */
	__u16 frame_tlbc;	/* free-threaded: which copy of the bytecode runs */
	__u16 code_argcount;
	__u16 code_kwonly;
	__u16 code_flags;
	__u16 code_line;
	__u16 code_name;
	__u16 code_linetable;
	__u16 code_tlbc;
	__u16 code_start;	/* where the bytecode begins; 0: the frame holds an index (<= 3.10) */
	__u8 lasti_shift;	/* 1: that index counts bytes */
	__u8 anchor;		/* enum python_anchor */
	__u16 object_type;
	__u32 key;
	__u32 keys_plain;	/* musl: the values are pointers, and nothing else */
};

#if defined(__bpf__)
/* By tgid. A forked child has its parent's until it executes another program. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, struct python_runtime);
	__uint(max_entries, 4096);
} python_runtimes SEC(".maps");
#endif

#endif
