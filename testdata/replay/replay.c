/*
 * Serves a training loop's memory from a plan: testing only, to prove that a plan
 * holds. LD_PRELOAD it into a Python with PyTorch on the CPU, whose allocator calls
 * posix_memalign(…, 64, …) and free (c10/core/impl/alloc_cpu.cpp).
 *
 * REPLAY_LOG=FILE writes what that allocator does: "a ID BYTES", "f ID", "s" when a
 * step begins. REPLAY_PLAN=FILE serves it: a line "region BYTES from STEP", then a line
 * "BYTES OFFSET" for each request of a step in order, the offset -1 where the
 * request is not planned. Request k of a step gets region + offset; freeing it is
 * nothing; k begins again when the job calls replay_step(). A request that is larger
 * than planned, or that the plan does not have, is glibc's. REPLAY_REPORT=FILE gets
 * what happened.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "replay.h"

static int (*real_memalign)(void **, size_t, size_t);
static void (*real_free)(void *);

static struct replay plan;
static FILE *logged;
static unsigned long ids;

/* The loop's own thread is served; others are not. */
static __thread int serving;

/* Only PyTorch's own allocator is served: oneDNN and others align to 64 bytes, too. */
static uintptr_t c10_begin, c10_end;

static int find_c10(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	if (!strstr(info->dlpi_name, "/libc10.so"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;

		if (info->dlpi_phdr[i].p_type == PT_LOAD && end > c10_end)
			c10_end = end;
	}
	c10_begin = info->dlpi_addr;
	return 1;
}

static int from_pytorch(void *caller)
{
	if (!c10_end)
		dl_iterate_phdr(find_c10, NULL);
	return (uintptr_t)caller - c10_begin < c10_end - c10_begin;
}

/* A log needs to know which addresses are PyTorch's, and under which number. */
#define SLOTS (1u << 22)
static struct slot {
	void *address;
	unsigned long id;
} *slots;

static struct slot *slot_of(void *address)
{
	unsigned at = (unsigned)(((uintptr_t)address >> 6) * 2654435761u) % SLOTS;

	while (slots[at].address && slots[at].address != address)
		at = (at + 1) % SLOTS;
	return &slots[at];
}

static void forget(struct slot *s)
{
	unsigned hole = (unsigned)(s - slots), at = hole;

	s->address = NULL;
	for (;;) {
		at = (at + 1) % SLOTS;
		if (!slots[at].address)
			return;
		unsigned home = (unsigned)(((uintptr_t)slots[at].address >> 6) * 2654435761u) % SLOTS;
		if ((at - home) % SLOTS >= (at - hole) % SLOTS) {
			slots[hole] = slots[at];
			slots[at].address = NULL;
			hole = at;
		}
	}
}

static void resolve(void)
{
	real_memalign = dlsym(RTLD_NEXT, "posix_memalign");
	real_free = dlsym(RTLD_NEXT, "free");
}

__attribute__((constructor)) static void begin(void)
{
	const char *path;

	resolve();
	if ((path = getenv("REPLAY_LOG"))) {
		slots = mmap(NULL, SLOTS * sizeof(*slots), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		logged = slots == MAP_FAILED ? NULL : fopen(path, "w");
	}
	if ((path = getenv("REPLAY_PLAN")) && replay_load(&plan, path))
		fprintf(stderr, "replay: %s is no plan\n", path);
}

__attribute__((destructor)) static void end(void)
{
	const char *path = getenv("REPLAY_REPORT");
	FILE *f = path ? fopen(path, "w") : NULL;

	if (logged)
		fclose(logged);
	logged = NULL;
	if (f) {
		fprintf(f, "steps %lu served %lu elsewhere %lu peak %lu\n", plan.steps, plan.served, plan.elsewhere, plan.peak);
		fclose(f);
	}
}

/* The job says that a step begins. */
void replay_step(void)
{
	serving = 1;
	replay_begin(&plan);
	if (logged)
		fputs("s\n", logged);
}

/* The job says that no step is under way. */
void replay_pause(void)
{
	serving = 0;
	if (logged)
		fputs("p\n", logged);
}

int posix_memalign(void **p, size_t alignment, size_t size)
{
	int failed, ours = alignment == 64 && (logged || plan.count) && from_pytorch(__builtin_return_address(0));

	if (ours && serving && plan.steps > plan.from && (*p = replay_alloc(&plan, size)))
		return 0;
	if (!real_memalign)
		resolve();
	failed = real_memalign(p, alignment, size);
	if (!failed && logged && ours) {
		struct slot *s = slot_of(*p);

		s->address = *p;
		s->id = ++ids;
		fprintf(logged, "a %lu %zu\n", s->id, size);
	}
	return failed;
}

void free(void *p)
{
	if (replay_owns(&plan, p))
		return;
	if (!real_free)
		resolve();
	if (logged && p) {
		struct slot *s = slot_of(p);

		if (s->address) {
			fprintf(logged, "f %lu\n", s->id);
			forget(s);
		}
	}
	real_free(p);
}
