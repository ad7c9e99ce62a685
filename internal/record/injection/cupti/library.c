// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The library that `ebpfprof run --device-times cupti` has the CUDA driver load into a job: it asks CUPTI what the
 * device did and when, and hands that over by calling ebpfprof_activities, an empty function that a probe is on. It
 * opens no file and no socket, starts no thread, allocates nothing and writes nothing but its own memory. CUPTI calls
 * it on a thread that CUPTI has for this, and at the process's exit.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cupti_activity.h>
#include <cupti_version.h>
#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>

#include "records.h"
#include "search.h"

#define EXPORTED __attribute__((visibility("default")))

/* Functions that give work to a device or wait for it (scripts/cupti.sh writes both files). */
static const CUpti_CallbackId driver_calls[] = {
#include "driver_calls.h"
};
static const CUpti_CallbackId runtime_calls[] = {
#include "runtime_calls.h"
};

/* The probe is here: the kernel copies the chunk meanwhile. */
EXPORTED __attribute__((noinline, noclone)) void ebpfprof_activities(const void *chunk, uint64_t length, uint64_t sequence)
{
	__asm__ volatile("nop" : : "r"(chunk), "r"(length), "r"(sequence) : "memory");
}

/* CUPTI's functions; those of the second list are not in each version. */
#define NEEDED(F)						\
	F(cuptiGetVersion)					\
	F(cuptiGetTimestamp)					\
	F(cuptiActivityRegisterCallbacks)			\
	F(cuptiActivityEnable)					\
	F(cuptiActivityGetNextRecord)				\
	F(cuptiActivityGetNumDroppedRecords)			\
	F(cuptiActivityFlushAll)				\
	F(cuptiActivityFlushPeriod)				\
	F(cuptiSetThreadIdType)
#define OPTIONAL(F)						\
	F(cuptiActivityEnableDriverApi)				\
	F(cuptiActivityEnableRuntimeApi)

#define POINTER(name) __typeof__(name) *name##_;
static struct { NEEDED(POINTER) OPTIONAL(POINTER) } cupti;

static uint32_t version;
static pid_t owner; /* a child that is forked has no CUDA, and no buffers of CUPTI's */
static atomic_ullong sequence, dropped, refused, unknown;

/* CUPTI's buffers: it loses and counts records while all are full. */
#define BUFFERS 16
#define BUFFER_BYTES (1 << 20)
static uint8_t buffers[BUFFERS][BUFFER_BYTES] __attribute__((aligned(4096)));
static atomic_bool taken[BUFFERS];

/* Names that were handed over, by what stands for them; forgotten now and then, since a chunk can be lost. */
#define NAMES 8192
#define FORGET_AFTER 4096 /* chunks */
static atomic_ullong names[NAMES];

/* One chunk in the making, on the stack of whom CUPTI calls: several threads can be at it. */
struct making {
	union {
		struct chunk chunk;
		uint8_t bytes[CHUNK_BYTES];
		uint64_t aligned;
	};
};

static void begin(struct making *m)
{
	m->chunk = (struct chunk){ .magic = CHUNK_MAGIC, .length = sizeof(struct chunk), .version = version };
}

static void hand_over(struct making *m)
{
	if (m->chunk.records) {
		m->chunk.sequence = atomic_fetch_add(&sequence, 1);
		if (m->chunk.sequence % FORGET_AFTER == FORGET_AFTER - 1)
			for (int i = 0; i < NAMES; i++)
				atomic_store_explicit(&names[i], 0, memory_order_relaxed);
		ebpfprof_activities(m->bytes, m->chunk.length, m->chunk.sequence);
	}
	begin(m);
}

/* Room for a record of so many bytes, a multiple of 8. */
static void *add(struct making *m, enum record_kind kind, size_t size, uint32_t correlation)
{
	struct record *r;

	if (m->chunk.length + size > CHUNK_BYTES)
		hand_over(m);
	r = (struct record *)(m->bytes + m->chunk.length);
	memset(r, 0, size);
	*r = (struct record){ kind, size, correlation };
	m->chunk.length += size;
	m->chunk.records++;
	return r;
}

static uint64_t monotonic(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* The closest pair of a few: between two readings the thread can have been off the CPU. */
static void add_clock(struct making *m)
{
	struct clock_record best = { .before = 0, .after = UINT64_MAX }, *r;

	for (int i = 0; i < 5; i++) {
		struct clock_record now = { .before = monotonic() };

		if (cupti.cuptiGetTimestamp_(&now.cupti) != CUPTI_SUCCESS)
			return;
		now.after = monotonic();
		if (now.after - now.before < best.after - best.before)
			best = now;
	}
	r = add(m, RECORD_CLOCK, sizeof(*r), 0);
	r->cupti = best.cupti;
	r->before = best.before;
	r->after = best.after;
}

static void add_lost(struct making *m)
{
	struct lost_record *r = add(m, RECORD_LOST, sizeof(*r), 0);

	r->dropped = atomic_load(&dropped);
	r->refused = atomic_load(&refused);
	r->unknown = atomic_load(&unknown);
}

static void tell_state(enum state state, int code, const char *text)
{
	struct making m;
	struct state_record *r;

	begin(&m);
	r = add(&m, RECORD_STATE, sizeof(*r), 0);
	r->state = state;
	r->code = code;
	r->pid = owner;
	r->length = strnlen(text, sizeof(r->text));
	memcpy(r->text, text, r->length);
	hand_over(&m);
}

/* What stands for a name, which is handed over when it is new. */
static uint64_t name_of(struct making *m, const char *text)
{
	uint64_t hash = 0xcbf29ce484222325ULL; /* FNV-1a */
	size_t length = 0, kept, at;
	struct name_record *r;

	if (!text)
		return 0;
	for (; text[length]; length++)
		hash = (hash ^ (uint8_t)text[length]) * 0x100000001b3ULL;
	hash += !hash;
	for (at = hash % NAMES; ; at = (at + 1) % NAMES) {
		uint64_t there = atomic_load_explicit(&names[at], memory_order_relaxed);

		if (there == hash)
			return hash;
		/* In a full neighbourhood the new name takes an old one's place, which is then handed over again. */
		if (!there || (at - hash % NAMES + NAMES) % NAMES == 16)
			break;
	}
	atomic_store_explicit(&names[at], hash, memory_order_relaxed);
	kept = length < NAME_BYTES ? length : NAME_BYTES;
	r = add(m, RECORD_NAME, sizeof(*r) + ((kept + 7) & ~7ULL), 0);
	r->name = hash;
	r->length = kept;
	r->cut = length - kept;
	memcpy(r + 1, text, kept);
	return hash;
}

static void add_kernel(struct making *m, const CUpti_ActivityKernel10 *k)
{
	uint64_t name = name_of(m, k->name);
	struct kernel_record *r = add(m, RECORD_KERNEL, sizeof(*r), k->correlationId);

	r->start = k->start;
	r->end = k->end;
	r->name = name;
	r->node = k->graphNodeId;
	r->device = k->deviceId;
	r->context = k->contextId;
	r->stream = k->streamId;
	r->graph = k->graphId;
	r->grid[0] = k->gridX;
	r->grid[1] = k->gridY;
	r->grid[2] = k->gridZ;
	r->block[0] = k->blockX;
	r->block[1] = k->blockY;
	r->block[2] = k->blockZ;
	r->shared = k->staticSharedMemory + k->dynamicSharedMemory;
	r->registers = k->registersPerThread;
}

/* Copies and sets have the same fields, at their own places. */
#define ADD_MOVED(m, c, kind, copied)							\
	do {										\
		struct copy_record *r = add(m, kind, sizeof(*r), (c)->correlationId);	\
											\
		r->start = (c)->start;							\
		r->end = (c)->end;							\
		r->bytes = (c)->bytes;							\
		r->node = (c)->graphNodeId;						\
		r->device = (c)->deviceId;						\
		r->context = (c)->contextId;						\
		r->stream = (c)->streamId;						\
		r->graph = (c)->graphId;						\
		r->way = copied;							\
	} while (0)

static void add_wait(struct making *m, const CUpti_ActivitySynchronization2 *s)
{
	struct wait_record *r = add(m, RECORD_WAIT, sizeof(*r), s->correlationId);

	r->start = s->start;
	r->end = s->end;
	r->type = s->type;
	r->context = s->contextId;
	r->stream = s->streamId;
	r->event = s->cudaEventId;
}

static void add_call(struct making *m, const CUpti_ActivityAPI *a, uint32_t domain)
{
	struct call_record *r = add(m, RECORD_CALL, sizeof(*r), a->correlationId);

	r->start = a->start;
	r->end = a->end;
	r->domain = domain;
	r->function = a->cbid;
	r->thread = a->threadId;
	r->result = a->returnValue;
}

static void add_activity(struct making *m, const CUpti_Activity *a)
{
	const CUpti_ActivityMemcpy6 *copy = (const void *)a;
	const CUpti_ActivityMemset4 *set = (const void *)a;

	switch (a->kind) {
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
		add_kernel(m, (const void *)a);
		break;
	case CUPTI_ACTIVITY_KIND_MEMCPY:
		ADD_MOVED(m, copy, RECORD_COPY, copy->copyKind);
		break;
	case CUPTI_ACTIVITY_KIND_MEMSET:
		ADD_MOVED(m, set, RECORD_SET, 0);
		break;
	case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
		add_wait(m, (const void *)a);
		break;
	case CUPTI_ACTIVITY_KIND_DRIVER:
		add_call(m, (const void *)a, CALL_DRIVER);
		break;
	case CUPTI_ACTIVITY_KIND_RUNTIME:
		add_call(m, (const void *)a, CALL_RUNTIME);
		break;
	default:
		atomic_fetch_add(&unknown, 1);
	}
}

static void CUPTIAPI buffer_wanted(uint8_t **buffer, size_t *size, size_t *most)
{
	*most = 0;
	for (int i = 0; i < BUFFERS; i++) {
		bool no = false;

		if (atomic_compare_exchange_strong(&taken[i], &no, true)) {
			*buffer = buffers[i];
			*size = BUFFER_BYTES;
			return;
		}
	}
	atomic_fetch_add(&refused, 1);
	*buffer = NULL;
	*size = 0;
}

static void CUPTIAPI buffer_full(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	struct making m;
	CUpti_Activity *a = NULL;
	size_t more = 0;
	int i = (buffer - buffers[0]) / BUFFER_BYTES;

	(void)size;
	if (buffer < buffers[0] || i >= BUFFERS) /* of another that uses CUPTI in this process */
		return;
	if (getpid() == owner) {
		begin(&m);
		add_clock(&m);
		while (valid && cupti.cuptiActivityGetNextRecord_(buffer, valid, &a) == CUPTI_SUCCESS)
			add_activity(&m, a);
		if (cupti.cuptiActivityGetNumDroppedRecords_(context, stream, &more) == CUPTI_SUCCESS)
			atomic_fetch_add(&dropped, more);
		add_lost(&m);
		hand_over(&m);
	}
	atomic_store(&taken[i], false);
}

static void at_exit(void)
{
	if (getpid() == owner)
		cupti.cuptiActivityFlushAll_(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

/* Those whose records library.c can read (layout.c): CUDA 12.0 to 12.9 and 13.0 to 13.2. */
static bool known(uint32_t v) { return (v >= 18 && v <= 28) || (v >= 130000 && v < 130300); }

/* A function that CUPTI lacks, NULL if none. */
static const char *look_up(void *library)
{
#define FIND(name) cupti.name##_ = (__typeof__(cupti.name##_))dlsym(library, #name);
#define CHECK(name) if (!cupti.name##_) return #name;
	NEEDED(FIND)
	OPTIONAL(FIND)
	NEEDED(CHECK)
	return NULL;
}

/* Calls have to be known beside work, so that each piece of work finds the call that is recorded; of all calls only where
 * CUPTI cannot choose. */
static CUptiResult enable_calls(void)
{
	CUptiResult e;

	bool chosen = cupti.cuptiActivityEnableDriverApi_ && cupti.cuptiActivityEnableRuntimeApi_;

	/* An older CUPTI does not have the newest functions: what counts is that the oldest go. */
	for (size_t i = 0; chosen && i < sizeof(driver_calls) / sizeof(*driver_calls); i++) {
		e = cupti.cuptiActivityEnableDriverApi_(driver_calls[i], 1);
		chosen = !e || driver_calls[i] != CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;
	}
	for (size_t i = 0; chosen && i < sizeof(runtime_calls) / sizeof(*runtime_calls); i++)
		cupti.cuptiActivityEnableRuntimeApi_(runtime_calls[i], 1);
	if (chosen)
		return CUPTI_SUCCESS;
	e = cupti.cuptiActivityEnable_(CUPTI_ACTIVITY_KIND_DRIVER);
	return e ? e : cupti.cuptiActivityEnable_(CUPTI_ACTIVITY_KIND_RUNTIME);
}

#define FLUSH_MS 500

/* The function that CUPTI refused, NULL if none. */
static const char *record(CUptiResult *e)
{
#define STEP(name, ...) if ((*e = cupti.name##_(__VA_ARGS__)) != CUPTI_SUCCESS) return #name;
	/* Without it calls are found by their time alone. */
	cupti.cuptiSetThreadIdType_(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
	STEP(cuptiActivityRegisterCallbacks, buffer_wanted, buffer_full)
	STEP(cuptiActivityEnable, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
	STEP(cuptiActivityEnable, CUPTI_ACTIVITY_KIND_MEMCPY)
	STEP(cuptiActivityEnable, CUPTI_ACTIVITY_KIND_MEMSET)
	STEP(cuptiActivityEnable, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)
	if ((*e = enable_calls()) != CUPTI_SUCCESS)
		return "cuptiActivityEnable of calls";
	STEP(cuptiActivityFlushPeriod, FLUSH_MS)
	return NULL;
}

/* The CUDA driver calls this once, in cuInit. Whatever comes of it, the job goes on. */
EXPORTED int InitializeInjection(void)
{
	void *library;
	const char *missing;
	struct link_map *map = NULL;
	CUptiResult e = CUPTI_SUCCESS;

	if (owner)
		return 1;
	owner = getpid();
	library = find_cupti();
	if (!library) {
		tell_state(STATE_NO_LIBRARY, 0, "");
		return 1;
	}
	if ((missing = look_up(library))) {
		tell_state(STATE_OLD_LIBRARY, 0, missing);
		return 1;
	}
	if ((e = cupti.cuptiGetVersion_(&version)) != CUPTI_SUCCESS || !known(version)) {
		tell_state(STATE_UNKNOWN_VERSION, e, "");
		return 1;
	}
	if ((missing = record(&e))) {
		tell_state(STATE_REFUSED, e, missing);
		return 1;
	}
	dlinfo(library, RTLD_DI_LINKMAP, &map);
	tell_state(STATE_RECORDING, 0, map && map->l_name ? map->l_name : "");
	atexit(at_exit);
	return 1;
}
