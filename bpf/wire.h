/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What crosses between the kernel and the loader: the specs that go down, the
 * records that come up, and the reasons why a record did not. bpf2go makes the
 * Go side from these declarations.
 */
#ifndef EBPFPROF_WIRE_H
#define EBPFPROF_WIRE_H

#define MAX_DEPTH 64	/* open calls a thread can have; the next is counted lost */
#define MAX_SCOPES 16	/* open framework scopes a thread can have */
#define STACK_WORDS 8	/* stack arguments that can be captured */
#define FEW_ARGS 4	/* the middle size of a record */
#define MAX_ARGS 12	/* a launch: function, grid, block, shared bytes, stream, and room */
#define TEXT_BYTES 128	/* of a captured string, the rest is cut and counted */
#define SEQUENCE_BITS 40	/* of an autograd sequence number; the rest but one bit are of its thread */
#define LONG_TEXT_BYTES 4096	/* likewise, of a mangled kernel name */
#define SLOT_WORDS 14	/* of a tensor: how many dimensions, five sizes and five strides, offset, elements, type and device */
#define NARROW_DIMS 2	/* a tensor of no more is sent in NARROW_WORDS */
#define NARROW_WORDS (1 + 2 * NARROW_DIMS + 3)
#define LIST_WORDS 5
#define TENSORS_WORDS 200	/* of all arguments of a call; the last begins before the last ARGUMENT_WORDS */
#define ARGUMENT_WORDS (SLOT_WORDS + 1 + SLOT_WORDS)
#define TOLD_SHAPES_BITS 8
#define TOLD_SHAPES (1 << TOLD_SHAPES_BITS)	/* so many shapes a thread's calls name by number */
#define INLINE_DIMS 5	/* so many dimensions lie in the tensor itself, the sizes of more behind its first word */
#define TENSOR_WORDS 32	/* of a call's arguments: those in registers, then so many of the stack's that all fit */
#define LIST_TENSORS 64	/* of a list so many are looked at */

/* What a probed call is. */
enum action {
	ACTION_SPAN = 1,	/* has a beginning and an end */
	ACTION_EVENT,		/* an instant */
	ACTION_SCOPE_BEGIN,	/* opens a framework scope; its end is another function */
	ACTION_SCOPE_END,
	ACTION_URGENT,		/* an instant that the reader is woken for: it reads memory that will not stay */
	ACTION_SEQUENCE,	/* argument 0 is the autograd sequence number of the call around it, 1 the thread that it is of */
	ACTION_PYTHON,		/* what the call around it does from now on may be what Python code does */
	ACTION_MARK,		/* the beginning of what an instant with SPEC_SINCE_MARK ends: no record */
	ACTION_TIMED,		/* an instant that takes time: as a span, but of the span around it */
	ACTION_INSTANT,		/* an instant with a span of its own, in the middle of a function: values may be in any register */
};

/* Where a captured value starts from. */
enum source {
	SOURCE_NONE,
	SOURCE_REGISTER,	/* integer argument n */
	SOURCE_STACK,		/* stack argument n, index REGISTER_ARGS + n: the n-th word above the return address */
	SOURCE_CONTEXT,		/* of an ACTION_INSTANT: the n-th word of pt_regs */
};

enum text_kind {
	TEXT_NONE,
	TEXT_C,			/* char * */
	TEXT_STRING,		/* libstdc++ std::string: pointer, length */
	TEXT_STRING_COW,	/* the old one: a pointer, the length 24 bytes before it */
	TEXT_BLOB,		/* behind capture number text_register, as many as the next one says; of those the first LONG_TEXT_BYTES - 1 */
	TEXT_PYTHON_TYPE,	/* the name of the Python type that capture number text_register points to */
	TEXT_EACH,		/* char *, behind each capture n of which bit n is in text_register */
};

enum capture_flag {
	CAPTURE_AT_RETURN = 1,	/* follow it when the call returns: an out parameter; a second step reads eight bytes */
	CAPTURE_DELAY = 2,	/* no argument: for how long the thread waited for a processor during the call, ns */
	CAPTURE_NARROW = 4,	/* the last step reads so many bytes fewer than eight */
};

/* What an argument of an operator is, of which its shape is read (tensors.h). */
enum tensor_argument {
	TENSOR_NONE,
	TENSOR_ONE,		/* a pointer to a Tensor, which is a pointer to a TensorImpl */
	TENSOR_OPTIONAL,	/* a pointer to a Tensor with its flag: behind it, or (offset 8) before it */
	TENSOR_LIST,		/* a pointer to the first of several, and how many in the next word */
	TENSOR_LIST_BEHIND,	/* a pointer to those two words, and to what says whether they are that */
	TENSOR_NUMBERS,		/* a pointer to numbers of 64 bits, and how many in the next word */
	TENSOR_NUMBER_BEHIND,	/* a pointer to one */
	TENSOR_NUMBER,		/* the word itself */
	TENSOR_VECTOR,		/* a pointer to a std::vector of Tensors: of one it is that tensor, of several a list */
};

struct capture {
	__u8 source;		/* enum source; of a tensor, enum tensor_argument */
	__u8 index;
	__u8 derefs;		/* how often to follow the value as a pointer */
	__u8 flags;		/* enum capture_flag */
	__s16 offset[2];	/* added before each step */
};

enum spec_flag {
	SPEC_HAS_EXIT = 1,	/* every normal return is seen: none means an exception */
	SPEC_HAS_RETURN = 2,	/* a return probe sees the end */
	SPEC_DETAIL = 4,	/* records only while detail is on */
	SPEC_KEEP_RESULT = 8,	/* the returned value goes into the record */
	SPEC_LONG_TEXT = 16,	/* the string has LONG_TEXT_BYTES */
	SPEC_TEXT_AT_RETURN = 32,	/* the string is behind capture number text_register, at the end */
	SPEC_STACK_ARGS = 64,	/* some captures are of stack arguments */
	SPEC_STACK = 128,	/* with call_entry_stack: the stack's id follows the captures */
	SPEC_STACK_BY_VALUE = 256,	/* calls from one place differ in their first value, and in their stack */
	SPEC_FOLLOWS = 512,	/* some captures are of memory: follow them */
	SPEC_OUT_ARGS = 1024,	/* some captures are of what the call leaves behind a pointer */
	SPEC_IN_ORDER = 2048,	/* the captures are the arguments from the first on, and behind them perhaps the return address */
	SPEC_LINE = 4096,	/* with call_entry_line: an outermost call's Python frames are walked */
	SPEC_BACKWARD = 8192,	/* captures 1 and 2 are the sequence number, and its thread, of the operator that it differentiates */
	SPEC_PYTHON = 16384,	/* calls in it do not inherit its line: it runs Python code, or does by now (ACTION_PYTHON) */
	SPEC_SINCE_MARK = 32768,	/* the instant ends what the caller began with a call that is an ACTION_MARK */
};

struct probe_spec {
	__u16 flags;		/* enum spec_flag */
	__u8 action;
	__u8 captures;
	__u8 text;		/* enum text_kind */
	__u8 text_register;
	__u8 turn;		/* of the links that record: those of the other turn are being replaced */
	__u8 tensors;		/* so many captures, behind the others, are of arguments whose shapes are read */
	__u8 tensor_sizes;	/* where a TensorImpl has its dimensions, bytes */
	__u8 tensor_storage;	/* its pointer to its StorageImpl */
	__u8 storage_bytes;	/* and that how many bytes it has */
	__u8 tensor_checks;	/* of a power of two of calls one has its tensors' storage read as well, so that user space can tell whether all this is so */
	__u32 identity;		/* with tensors: tells functions apart whose place this is after each other */
	struct capture capture[MAX_ARGS];
};

struct probe_count {
	__u64 entries;
	__u64 exits;
	__u64 lost;		/* records of this probe that were not sent */
	__u64 passed;		/* hits outside of a slice: paid for, not recorded */
};

/*
 * A process that is traced. A pid is used again, its start tells which process
 * it was: the entry goes when the process does, and at the latest when another
 * one gets the pid (lives.h).
 */
struct target {
	__u64 start_ticks;	/* as in /proc/PID/stat */
	__u32 follow;		/* its children are traced too */
	__u32 threads;		/* entries of its own in the table of threads */
	__u32 waits;		/* likewise, of waits */
	__u32 io;		/* likewise, of those that read and write */
	__u32 user;		/* to whom it is charged (shares.h) */
	__u32 pad;
};

/* Tables of which no user has all (shares.h). */
enum share {
	SHARE_THREADS,
	SHARE_WAITS,
	SHARE_IO,
	SHARE_SCOPES,
	SHARE_PROCESSES,
	SHARE_YOUNG,
	SHARES,
};

/* What a user has of them, by the programs' count. */
struct user_share {
	__u64 refused[SHARES];
	__u32 taken[SHARES];
	__u32 last[SHARES];	/* the process that was refused last */
};

/* And by the loader's: what it has put there, less what it has taken out. */
struct user_change {
	__u32 by[SHARES];
};

/* A child of a traced process that is not looked at yet (young.h). */
struct young {
	__u64 start_ns;		/* when it was forked, CLOCK_MONOTONIC */
	__u64 end_ns;		/* 0: it lives */
	__u64 cpu_ns;		/* once it has ended */
	__u64 start_ticks;	/* as in /proc/PID/stat */
	__u32 parent;		/* the traced process that it counts for: the nearest of those above it */
	__u32 copy_of;		/* the traced process whose program it still is, 0: it is another since */
	__u32 execed;
	__u32 failed;		/* it ended with an error, or by a signal */
	char comm[16];		/* of the program that it executes; before that, of its parent */
	__u32 user;		/* to whom it is charged */
	__u32 pad;
};

/* Those that ended before they were looked at, added up. */
struct short_key {
	__u32 parent;
	__u32 execed;
	char comm[16];
};

struct short_sum {
	__u64 count;
	__u64 failed;
	__u64 wall_ns;
	__u64 cpu_ns;
	__u64 first_ns;		/* when the first began */
};

enum record_kind {
	RECORD_SPAN = 1,
	RECORD_EVENT,
	RECORD_TEXT,
	RECORD_FORK,
	RECORD_EXEC,
	RECORD_EXIT,
	RECORD_THREAD,		/* a thread's first event */
	RECORD_THREAD_EXIT,
	RECORD_LINK_MAP,	/* the dynamic linker loaded or dropped a library */
	RECORD_SAMPLE,
	RECORD_STACK,
	RECORD_TENSORS,		/* before the spans that they are of */
	RECORD_IO,
	RECORD_IO_CALL,
	RECORD_OUT_OF_MEMORY,	/* the kernel kills a process, since there is no memory left */
	RECORD_IO_PATH,		/* before the records of what it is the path of */
	RECORD_YOUNG,		/* a child that is not looked at yet, and before it there was none */
};

/* The same values as tracer.EndMethod and tracer.Status. */
enum end_method {
	END_RETURN,
	END_EXIT_SITE,
	END_NEXT_ENTRY,
	END_SCOPE,
	END_UNFINISHED,
};

enum call_status {
	STATUS_ABSENT,
	STATUS_OK,
	STATUS_THREW,
};

/* Whose Python stack a call has. The ids of stacks leave these bits free. */
enum line_source {
	LINE_NONE,
	LINE_OWN,		/* it was taken when the call began */
	LINE_INHERITED,		/* it is that of the call around it */
	LINE_FORWARD,		/* of a backward node: that of the operator that it differentiates */
	LINE_SOURCES,
};

struct call_record {
	__u8 kind;
	__u8 end;
	__u8 status;
	__u8 args;		/* how many follow; ret comes before them */
	__u32 spec;
	__u64 span_id;
	__u64 parent_id;
	__u64 start_ns;		/* CLOCK_MONOTONIC */
	__u64 end_ns;		/* of an instant the same, but with SPEC_SINCE_MARK */
	__u32 tgid;
	__u32 tid;
	__u64 sequence;		/* all ones when there was none; from bit SEQUENCE_BITS on PyTorch's number of the thread */
	__u32 epoch;
	__u32 faults;		/* bit n: argument n could not be read; bit 31: the text */
	__u64 line;		/* id of the stack of the Python code behind it, 0: none; enum line_source in the lowest bits */
	__u32 shapes;		/* the thread's number of its arguments' shapes, 0: none */
	__u32 shapes_around;	/* and of those of the call around it */
};

struct call_record_few {
	struct call_record call;
	__u64 ret;
	__u64 arg[FEW_ARGS];
};

struct call_record_full {
	struct call_record call;
	__u64 ret;
	__u64 arg[MAX_ARGS];
};

struct text_record {
	__u8 kind;
	__u8 cut;		/* of TEXT_EACH: in bit 0, and from bit 1 on which capture it is behind */
	__u16 length;
	__u32 spec;
	__u64 span_id;
	char text[TEXT_BYTES];
};

/* What became of reading one argument. */
enum tensor_outcome {
	TENSOR_READ = 1,
	TENSOR_CHECKED,		/* read, and its storage too */
	TENSOR_ABSENT,		/* an optional one that was not given */
	TENSOR_FAULT,		/* it could not be read */
	TENSOR_BOXED,		/* a list in a form that is not followed */
	TENSOR_LISTED,		/* a vector of none or several: read as a list is */
	TENSOR_CUT,		/* its sizes lie elsewhere, and were not to be read: or it is no tensor */
};

/*
 * The shapes of an operator's arguments: where each one's words begin, and the words.
 * They have a number, unique to the thread, and are sent once: calls with the same name
 * them by it.
 * Of a tensor they are as they lie there, SLOT_WORDS, or of one of NARROW_DIMS at the
 * most NARROW_WORDS, those that it has: its dimensions, sizes, strides, offset,
 * elements, type and device. Behind them, if it was checked, are the bytes of
 * its storage, and of more than INLINE_DIMS its sizes, then (where they are no more
 * than fit twice) its strides. Of numbers there are how many, and the first of them; of
 * a list (LIST_WORDS) how many tensors, elements of those that were looked at, how many
 * these are, the first one's type, and how many have the same.
 */
struct tensors_record {
	__u8 kind;
	__u8 arguments;
	__u16 words;
	__u32 spec;
	__u32 tid;
	__u32 number;
	__u8 outcome[MAX_ARGS];	/* enum tensor_outcome */
	__u8 at[MAX_ARGS];
	__u64 word[TENSORS_WORDS];
};

struct long_text_record {
	__u8 kind;
	__u8 cut;
	__u16 length;
	__u32 spec;
	__u64 span_id;
	char text[LONG_TEXT_BYTES];
};

struct life_record {
	__u8 kind;
	__u8 pad[3];
	__u32 tgid;
	__u32 tid;
	__u32 parent_tgid;	/* RECORD_FORK; of RECORD_OUT_OF_MEMORY the process that asked for memory, whose name comm is */
	__s32 exit_code;	/* RECORD_EXIT: as in wait(2) */
	__u32 execed;		/* RECORD_FORK: the child executes another program by now */
	__u64 ts_ns;
	__u64 start_ticks;	/* since boot, as in /proc/PID/stat: of the thread where the record is of one, else of the process */
	__u64 process_ticks;	/* likewise, of the process */
	char comm[16];
};

enum sample_state {
	SAMPLE_ON_CPU,
	SAMPLE_IN_SYSCALL,	/* off the CPU: waited in a system call */
	SAMPLE_IN_FAULT,	/* waited for a page */
	SAMPLE_PREEMPTED,	/* could run, but another did */
	SAMPLE_STOPPED,		/* stopped by a signal, or by a debugger */
};

#define NO_SYSCALL -1

/* One look at a thread. */
struct sample_record {
	__u8 kind;
	__u8 state;		/* enum sample_state */
	__u8 holds_gil;		/* 0 no, 1 yes, 2 not known */
	__u8 in_gc;		/* likewise */
	__u32 cpu;
	__u64 ts_ns;		/* CLOCK_MONOTONIC; off the CPU: when it left it */
	__u64 weight_ns;
	__u64 ready_ns;		/* of weight_ns, off the CPU: it could run and had none */
	__u64 stack_id;		/* of a stack_record, 0: none was taken */
	__u64 span_id;
	__u32 tgid;
	__u32 tid;
	__s32 syscall;
	__u32 waker;		/* thread, 0: not seen */
};

#define FILE_SYSTEM_BYTES 20	/* of the name of a file system's type */
#define IO_SEVERAL 255	/* instead of what a descriptor is of: more kinds than a thread has places */
#define IO_MEMORY 15	/* likewise: what came in from swap, of no file */

/* What is read or written: one operation on one kind of descriptors of one mount. */
struct io_class {
	__u32 mount;		/* the kernel's number of it, as in /proc/PID/mountinfo */
	__u32 device;		/* the file system's, as the kernel numbers them */
	__u8 type;		/* as in stat(2), st_mode >> 12; 0: none, the descriptor is not open */
	__u8 operation;		/* 1 read, 2 write, 3 sync, 4 major fault; 0: several */
	__u8 pad[2];
	char system[FILE_SYSTEM_BYTES];	/* its type's name */
};

/* Sums over the calls of a class. */
struct io_sums {
	__u64 calls;
	__u64 failed;
	__u64 bytes;
	__u64 ns;
	__u64 waited_ns;	/* off the CPU */
};

/* Why a record of sums was sent. */
enum io_event {
	IO_SUMS,
	IO_ENDED,		/* the thread has; no sums */
	IO_LEFT_OUT,		/* the budget has no room for measuring this thread's calls for now; no sums */
	IO_TAKEN_IN,		/* it has again */
	IO_GIVEN_UP,		/* it has none even for passing them by; no sums */
};

/* All that a thread has read or written of a class so far. */
struct io_record {
	__u8 kind;
	__u8 event;		/* enum io_event */
	__u16 slot;
	__u32 generation;	/* of what the slot holds: another is another class */
	__u32 tgid;
	__u32 tid;
	__u64 born_ns;		/* of the thread's entry */
	__u64 passed;		/* its calls that were not measured */
	__u64 first_ns;		/* when the first call since the last record began */
	__u64 last_ns;		/* when the last one ended */
	struct io_class class;
	struct io_sums sums;
};

/* A long one. */
struct io_call_record {
	__u8 kind;
	__u8 pad[3];
	__s32 syscall;
	__u32 tgid;
	__u32 tid;
	__u64 span_id;
	__u64 parent_id;
	__u64 start_ns;
	__u64 end_ns;
	__u64 waited_ns;
	__s64 result;
	struct io_class class;
	__u32 slot;		/* as of io_record */
	__u32 generation;
	__u64 born_ns;
};

#define IO_PATH_DEPTH 32	/* directories */
#define IO_NAME_BYTES 256	/* of a name, NAME_MAX and a zero */
#define IO_PATH_BYTES 512	/* where no further name begins */

/* Which file a place of a thread is of (--paths). */
struct io_path_record {
	__u8 kind;
	__u8 whole;		/* 1: up to the root of the mount */
	__u16 slot;
	__u32 generation;
	__u32 tgid;
	__u32 tid;
	__u64 born_ns;
	__u32 bytes;		/* of the names */
	__u32 pad;
	char names[IO_PATH_BYTES + IO_NAME_BYTES];	/* the file's, its directory's and so on, each with a zero */
};

/*
 * The frames of a call stack, sent once in an epoch. After it come, in this
 * order, so many native_frame, python_frame, python_segment and kernel addresses.
 */
struct stack_record {
	__u8 kind;
	__u8 python_outcome;	/* enum python_outcome */
	__u8 native_outcome;	/* enum native_outcome */
	__u8 kernel;
	__u16 native;
	__u16 python;
	__u16 segments;
	__u16 of_call;		/* 1: a call's, from whose Python frames others may inherit */
	__u32 tgid;
	__u64 id;		/* a hash of the raw frames; not 0 */
	__u64 sp;		/* from which the native frames' cfa count */
};

/*
 * Why something that happened is not in the dataset. The names are those of
 * tracer/kernel/loss.go; a test compares them.
 */
enum loss {
	LOSS_RING_FULL,		/* the reader was too slow for --buffer-size */
	LOSS_LIFE_RING_FULL,
	LOSS_THREAD_TABLE_FULL,	/* more threads than the table holds */
	LOSS_STACK_DEPTH,	/* more than MAX_DEPTH calls open on a thread */
	LOSS_SCOPE_DEPTH,
	LOSS_SCOPE_LOST,	/* a scope whose end was not seen, or for which there was no room */
	LOSS_READ_FAULT,	/* the memory behind a pointer was not resident: a NULL, not a row */
	LOSS_TEXT_CUT,		/* a string longer than its record */
	LOSS_TEXT_LOST,		/* the ring was full for the string; its call is counted by itself */
	LOSS_UNMATCHED_EXIT,	/* the call began before the probes were there */
	LOSS_FOREIGN_HIT,	/* a process that is not traced paid for a probe */
	LOSS_SAMPLE_RING_FULL,	/* a sample that did not fit */
	LOSS_STACK_RING_FULL,	/* a stack's frames that did not fit: sent when it is seen again */
	LOSS_SAMPLE_BUSY,	/* a stack was being taken on the CPU already */
	LOSS_WAIT_TABLE_FULL,	/* a thread that left the CPU, and more did than the table holds */
	LOSS_PROCESS_TABLE_FULL,	/* a child that is not traced: more processes than the table holds */
	LOSS_WALK_TABLE_FULL,	/* a child whose stacks are not walked until the loader has looked at it */
	LOSS_THREAD_QUOTA,	/* more threads of one process, or of one user, than its share of the table */
	LOSS_WAIT_QUOTA,	/* likewise, of the table of waits */
	LOSS_SCOPE_QUOTA,	/* likewise, of the table of scopes */
	LOSS_SHAPES_LOST,	/* no room in the ring for the shapes of a call */
	LOSS_IO_LOST,		/* the last sums of a thread's reads and writes, for which the ring had no room */
	LOSS_IO_TABLE_FULL,	/* calls of threads that read or write, and more do than the table holds */
	LOSS_IO_QUOTA,		/* likewise, than the share of their process or its user */
	LOSS_PREEMPTED_STACK,	/* a preempted thread's, which was not taken: others' were a moment before */
	LOSS_SHORT_LIVES,	/* a short process of a command, and more of them than the table holds */
	LOSS_PROCESS_QUOTA,	/* a child that is not traced: its user has its share of the table */
	LOSS_MAX,
};

#endif
