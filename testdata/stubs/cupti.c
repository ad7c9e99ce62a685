/* A stub of NVIDIA's libcupti: it watches the stub device (device.h) and writes what that did as activity records, into
 * buffers of whoever registered callbacks. Its clock is CLOCK_MONOTONIC plus an hour and some, as CUPTI's is another than
 * the kernel's. A thread delivers what there is in each period; STUB_CUPTI_REFUSE=NAME makes one function fail. */
#define _GNU_SOURCE
#include "cupti.h"
#include "device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define AHEAD 3600123456789ULL
#define CONTEXT 1

typedef void (*requested)(uint8_t **, size_t *, size_t *);
typedef void (*completed)(void *, uint32_t, uint8_t *, size_t, size_t);

static requested request;
static completed complete;
static atomic_bool enabled[KINDS];
static atomic_uint correlation;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *buffer;
static size_t size, used, dropped;

static bool refuses(const char *name)
{
	const char *refused = getenv("STUB_CUPTI_REFUSE");

	return refused && !strcmp(refused, name);
}
#define REFUSE(name) if (refuses(name)) return 999

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec + AHEAD;
}

static void deliver(void)
{
	pthread_mutex_lock(&lock);
	uint8_t *full = buffer;
	size_t all = size, valid = used;
	buffer = NULL;
	used = 0;
	pthread_mutex_unlock(&lock);
	if (full)
		complete(NULL, 0, full, all, valid);
}

static void add(const void *record, size_t length)
{
	for (;;) {
		size_t most;

		pthread_mutex_lock(&lock);
		if (!buffer && request)
			request(&buffer, &size, &most);
		if (!buffer) {
			dropped++;
			break;
		}
		if (used + length <= size) {
			memcpy(buffer + used, record, length);
			used += length;
			break;
		}
		pthread_mutex_unlock(&lock);
		deliver();
	}
	pthread_mutex_unlock(&lock);
}

static uint32_t began(void) { return atomic_fetch_add(&correlation, 1) + 1; }

static void returned(uint32_t number, const char *what, uint64_t from, uint64_t to, int tid)
{
	uint32_t cbid = !strcmp(what, "graph") ? CBID_GRAPH : !strncmp(what, "cuMemcpy", 8) ? CBID_COPY
		: !strncmp(what, "cuMemset", 8) ? CBID_SET : CBID_LAUNCH;
	struct api a = { .kind = KIND_DRIVER, .cbid = cbid, .start = from + AHEAD, .end = to + AHEAD, .process = getpid(),
			 .thread = tid, .correlation = number };

	if (enabled[KIND_DRIVER])
		add(&a, sizeof(a));
}

static void worked(uint32_t number, const struct work *work, unsigned node, const void *stream, uint64_t from, uint64_t to)
{
	uint32_t on = (uintptr_t)stream >> 4 & 0xffff;

	if (!strncmp(work->name, "cuMemcpy", 8)) {
		struct memcpy6 m = { .kind = KIND_MEMCPY, .way = strstr(work->name, "HtoD") ? 1 : 2, .bytes = work->ns, .start = from + AHEAD,
				     .end = to + AHEAD, .context = CONTEXT, .stream = on, .correlation = number, .node = node };

		if (enabled[KIND_MEMCPY])
			add(&m, sizeof(m));
		return;
	}
	struct kernel k = { .kind = KIND_KERNEL, .registers = 40, .start = from + AHEAD, .end = to + AHEAD, .context = CONTEXT,
			    .stream = on, .grid = { work->ns / 1000, 1, 1 }, .block = { 128, 1, 1 }, .correlation = number,
			    .name = work->name, .node = node, .graph = node ? 7 : 0 };

	if (enabled[KIND_KERNEL])
		add(&k, sizeof(k));
}

static struct stub_watch watch = { began, returned, worked };

static void *deliver_each(void *period)
{
	for (;;) {
		usleep((uintptr_t)period * 1000);
		deliver();
	}
	return NULL;
}

int cuptiGetVersion(uint32_t *v) { *v = VERSION; return OK; }
int cuptiGetTimestamp(uint64_t *t) { *t = clock_ns(); return OK; }
int cuptiSetThreadIdType(int type) { return type == 1 ? OK : INVALID_PARAMETER; }
int cuptiActivityRegisterCallbacks(requested r, completed c) { request = r; complete = c; return OK; }

int cuptiActivityEnable(unsigned kind)
{
	REFUSE("cuptiActivityEnable");
	if (kind >= KINDS)
		return INVALID_PARAMETER;
	enabled[kind] = true;
	struct stub_watch **watched = dlsym(RTLD_DEFAULT, "stub_watch");
	if (watched)
		*watched = &watch;
	return OK;
}

int cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable)
{
	if (cbid == CBID_LAUNCH)
		enabled[KIND_DRIVER] = enable;
	return OK;
}
int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable) { (void)cbid, (void)enable; return OK; }

int cuptiActivityFlushAll(uint32_t flag) { (void)flag; deliver(); return OK; }

int cuptiActivityFlushPeriod(uint32_t ms)
{
	pthread_t thread;

	pthread_create(&thread, NULL, deliver_each, (void *)(uintptr_t)ms);
	pthread_detach(thread);
	return OK;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *n)
{
	(void)context, (void)stream;
	pthread_mutex_lock(&lock);
	*n = dropped;
	dropped = 0;
	pthread_mutex_unlock(&lock);
	return OK;
}

int cuptiActivityGetNextRecord(uint8_t *from, size_t valid, uint8_t **record)
{
	size_t at = 0;

	if (*record) {
		uint32_t kind = *(uint32_t *)*record;

		at = *record - from + (kind == KIND_KERNEL ? sizeof(struct kernel) : kind == KIND_MEMCPY ? sizeof(struct memcpy6) : sizeof(struct api));
	}
	if (at >= valid)
		return MAX_LIMIT_REACHED;
	*record = from + at;
	return OK;
}
