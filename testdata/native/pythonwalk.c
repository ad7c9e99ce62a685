/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The kernel's Python walk (bpf/python.h), compiled for user space and run over
 * recorded memory. A tape is a struct python_runtime, a struct walk_start, and
 * the memory: {address, length} of 64 bits each and so many bytes, repeated.
 *
 *   pythonwalk TAPE          walk it
 *   pythonwalk TAPE fail     walk it again and again, each time with another read failing,
 *                            and with it what is tried of the same memory next
 *   pythonwalk TAPE then TAPE2  walk it eight times, then the other one eight times, as
 *                            samples that know the code objects of those before
 *   pythonwalk TAPE PID      walk a live process and add what was read to the tape
 *
 * A line per walk: the read that failed (0: none), the number of reads, outcome,
 * holds_gil, in_gc, cold, entering, then code:checksum:instruction of each frame, "/", and
 * anchor:end of each segment.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))
#define HAVE_BPF_LOOP 0
#define bpf_loop(steps, callback, context, flags) ((void)(callback))

static long bpf_probe_read_user(void *to, __u32 size, const void *from);
#include "../../bpf/python.h"

struct region {
	__u64 address, length;
	const char *bytes;
};

static struct region regions[65536];
static size_t region_count, reads, failing_read;
static __u64 failed_at, failed_size;
static int live = -1;
static FILE *recording;

static long fail(void *to, __u32 size)
{
	memset(to, 0, size);	/* as the helper does */
	return -14;
}

static long read_live(void *to, __u32 size, __u64 address)
{
	__u64 head[2] = { address, size };

	if (pread(live, to, size, address) != (ssize_t)size)
		return fail(to, size);
	fwrite(head, sizeof(head), 1, recording);
	fwrite(to, size, 1, recording);
	return 0;
}

static long bpf_probe_read_user(void *to, __u32 size, const void *from)
{
	__u64 address = (__u64)from;

	/* What can not be read can not be read in a smaller piece either. */
	if (++reads == failing_read) {
		failed_at = address;
		failed_size = size;
		return fail(to, size);
	}
	if (reads == failing_read + 1 && address - failed_at < failed_size)
		return fail(to, size);
	if (live >= 0)
		return read_live(to, size, address);
	for (size_t i = 0; i < region_count; i++) {
		const struct region *r = &regions[i];

		if (address >= r->address && address - r->address <= r->length &&
		    size <= r->length - (address - r->address)) {
			memcpy(to, r->bytes + (address - r->address), size);
			return 0;
		}
	}
	return fail(to, size);
}

static void index_regions(const char *at, const char *end)
{
	while (end - at >= 16) {
		struct region *r = &regions[region_count];

		memcpy(&r->address, at, 8);
		memcpy(&r->length, at + 8, 8);
		r->bytes = at + 16;
		if (r->length > (__u64)(end - r->bytes) || region_count == sizeof(regions) / sizeof(*regions) - 1)
			break;
		at = r->bytes + r->length;
		region_count++;
	}
}

static void walk(const struct python_runtime *rt, const struct walk_start *start, struct python_cache *known)
{
	/* Of their own, so that the sanitizer sees their ends. */
	struct python_scratch *scratch = malloc(sizeof(*scratch));
	struct python_memory *memory = malloc(sizeof(*memory));
	struct python_stack *stack = calloc(1, sizeof(*stack));

	memset(scratch, 0xa5, sizeof(*scratch));	/* what the walk before left */
	memset(memory, 0xa5, sizeof(*memory));
	memory->checked = memory->differed = 0;
	stack->holds_gil = PYTHON_NOT_KNOWN;
	stack->in_gc = PYTHON_NOT_KNOWN;
	reads = 0;
	failed_size = 0;
	stack->outcome = python_walk(rt, start, scratch, memory, known, stack);
	printf("%zu %zu %u %u %u %u %u", failing_read, reads, stack->outcome, stack->holds_gil,
	       stack->in_gc, stack->cold, stack->entering);
	for (__u32 i = 0; i < stack->count; i++)
		printf(" %" PRIx64 ":%x:%d", (uint64_t)stack->frame[i].code, stack->frame[i].checksum, stack->frame[i].instruction);
	printf(" /");
	for (__u32 i = 0; i < stack->segments; i++)
		printf(" %" PRIx64 ":%u", (uint64_t)stack->segment[i].anchor, stack->segment[i].end);
	printf("\n");
	free(scratch);
	free(memory);
	free(stack);
}

/* Reads a tape: where its memory begins, or null. */
static const char *load(const char *path, char *tape, size_t room, struct python_runtime *rt, struct walk_start *start)
{
	FILE *f = fopen(path, "r");
	size_t size;

	if (!f) {
		perror(path);
		return 0;
	}
	size = fread(tape, 1, room, f);
	fclose(f);
	if (size < sizeof(*rt) + sizeof(*start)) {
		fprintf(stderr, "pythonwalk: %s is too short\n", path);
		return 0;
	}
	memcpy(rt, tape, sizeof(*rt));
	memcpy(start, tape + sizeof(*rt), sizeof(*start));
	region_count = 0;
	index_regions(tape + sizeof(*rt) + sizeof(*start), tape + size);
	return tape;
}

int main(int argc, char **argv)
{
	static char tape[1 << 22], second[1 << 22];
	static struct python_cache known;
	struct python_runtime rt;
	struct walk_start start;

	if (argc < 2 || !load(argv[1], tape, sizeof(tape), &rt, &start))
		return 1;
	if (argc > 3 && !strcmp(argv[2], "then")) {
		for (int i = 0; i < PYTHON_CHECK; i++)
			walk(&rt, &start, &known);
		if (!load(argv[3], second, sizeof(second), &rt, &start))
			return 1;
		for (int i = 0; i < PYTHON_CHECK; i++)
			walk(&rt, &start, &known);
		return 0;
	}
	if (argc > 2 && strcmp(argv[2], "fail")) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/%s/mem", argv[2]);
		live = open(path, O_RDONLY);
		recording = fopen(argv[1], "a");
		if (live < 0 || !recording) {
			perror(path);
			return 1;
		}
		walk(&rt, &start, 0);
		fclose(recording);
		return 0;
	}
	walk(&rt, &start, 0);
	if (argc > 2) {
		size_t total = reads;

		for (failing_read = 1; failing_read <= total; failing_read++)
			walk(&rt, &start, 0);
	}
	return 0;
}
