/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the library hands over: chunks of records, in the machine's byte order. The reader is internal/exchange/cupti,
 * which believes none of it. Times are CUPTI's unless said otherwise.
 */
#ifndef EBPFPROF_RECORDS_H
#define EBPFPROF_RECORDS_H

#include <stdint.h>

#define CHUNK_MAGIC 0x31435045	/* "EPC1": the number is the version of all that follows */
#define CHUNK_BYTES 8192	/* at most; bpf/activities.bpf.c copies no more */
#define NAME_BYTES 2048		/* of a kernel's name, at most */

struct chunk {
	uint32_t magic;
	uint32_t length;	/* of the chunk, this included */
	uint32_t records;
	uint32_t version;	/* CUPTI's */
	uint64_t sequence;	/* of the process's chunks, from 0 */
	uint64_t reserved;
};

enum record_kind {
	RECORD_STATE = 1,
	RECORD_CLOCK,
	RECORD_NAME,
	RECORD_KERNEL,
	RECORD_COPY,
	RECORD_SET,
	RECORD_WAIT,
	RECORD_CALL,
	RECORD_LOST,
};

struct record {
	uint16_t kind;
	uint16_t size;		/* this included; a multiple of 8 */
	uint32_t correlation;	/* of the call that gave the work to the device */
};

enum state {
	STATE_RECORDING,
	STATE_NO_LIBRARY,	/* no libcupti was found */
	STATE_OLD_LIBRARY,	/* it lacks a function that is needed, which text names */
	STATE_UNKNOWN_VERSION,
	STATE_REFUSED,		/* CUPTI refused what text names, with code */
};

struct state_record {
	struct record record;
	uint32_t state;
	int32_t code;
	uint32_t length;	/* of text */
	uint32_t pid;		/* the process's own number for itself */
	char text[256];		/* where libcupti is, or what went wrong */
};

/* Two readings of CLOCK_MONOTONIC around one of CUPTI's clock. */
struct clock_record {
	struct record record;
	uint64_t cupti, before, after;
};

/* Follows before the first record that has the name. */
struct name_record {
	struct record record;
	uint64_t name;
	uint32_t length;	/* of what follows */
	uint32_t cut;		/* bytes that the name is longer */
};

struct kernel_record {
	struct record record;
	uint64_t start, end, name, node;	/* node: of a graph, 0: none */
	uint32_t device, context, stream, graph;
	uint32_t grid[3], block[3];
	uint32_t shared, registers;
};

struct copy_record {
	struct record record;
	uint64_t start, end, bytes, node;
	uint32_t device, context, stream, graph;
	uint32_t way, reserved;	/* CUpti_ActivityMemcpyKind; 0 of RECORD_SET */
};

struct wait_record {
	struct record record;
	uint64_t start, end;
	uint32_t type, context, stream, event;
};

enum { CALL_DRIVER = 1, CALL_RUNTIME = 2 };

struct call_record {
	struct record record;
	uint64_t start, end;
	uint32_t domain, function, thread, result;
};

/* What is missing since the process began. */
struct lost_record {
	struct record record;
	uint64_t dropped;	/* by CUPTI */
	uint64_t refused;	/* buffers that CUPTI asked for when all were full */
	uint64_t unknown;	/* records of kinds that were not asked for */
};

#endif
