/*
 * The native walk of bpf/unwind.h in user space: over recorded memory, over
 * that of a stopped process, and with reads that fail. It does as it is told on
 * its standard input, in messages of a letter, a length (32 bits) and as many
 * bytes; the answer to a walk is its struct native_stack.
 */
#include <fcntl.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define __noinline __attribute__((noinline))
#define HAVE_BPF_LOOP 0
#define bpf_loop(count, step, context, flags) ((void)(count), (void)(step), (void)(context))

#include "../../bpf/unwind.h"

#define MAX_SEGMENTS 64
#define MAX_FAULTS 64
#define MAX_LEAVES (UNWIND_SHARDS * UNWIND_SHARD_LEAVES)

struct segment {
	__u64 address;
	__u64 size;
	char *bytes;
};

static struct unwind_process process;
static struct unwind_file files[UNWIND_FILES];
static struct unwind_rule rules[UNWIND_RULES];
static char *leaves[MAX_LEAVES];
static struct segment segments[MAX_SEGMENTS];
static __u64 faults[MAX_FAULTS];
static unsigned int n_segments, n_faults;
static struct walk_cache cache;
static __u32 generation = 1;	/* of all that walks look up */
static int memory = -1;	/* of a stopped process */
static __u64 probe_page, stepped;
static struct pending_return pending[64];
static unsigned int n_pending;

static __u32 walk_generation(void)
{
	return generation;
}

static const struct unwind_process *unwind_process(__u32 tgid)
{
	return tgid ? &process : 0;
}

static const struct unwind_file *unwind_file(__u32 file)
{
	return file < UNWIND_FILES ? &files[file] : 0;
}

static const struct unwind_rule *unwind_rule(__u32 rule)
{
	return rule < UNWIND_RULES ? &rules[rule] : 0;
}

static __u64 *unwind_found_at(__u32 index)
{
	static __u64 found[UNWIND_FOUND];

	return &found[index % UNWIND_FOUND];
}

static const void *unwind_leaf(__u32 leaf)
{
	return leaf < MAX_LEAVES ? leaves[leaf] : 0;
}

static void want_process(__u32 tgid)
{
	(void)tgid;
}

static void count_native_outcome(__u32 outcome)
{
	(void)outcome;
}

static long read_user_at(void *to, __u32 size, __u64 address)
{
	for (unsigned int i = 0; i < n_faults; i++)
		if (faults[i] >= address && faults[i] < address + size)
			return -14;
	for (unsigned int i = 0; i < n_segments; i++) {
		struct segment *s = &segments[i];

		if (address < s->address || address + size > s->address + s->size)
			continue;
		memcpy(to, s->bytes + (address - s->address), size);
		return 0;
	}
	if (memory >= 0 && pread(memory, to, size, address) == (ssize_t)size)
		return 0;
	return -14;
}

static bool in_probe_page_at(__u64 pc)
{
	return probe_page && (pc & ~4095ULL) == probe_page;
}

static __u64 stepped_address_at(void)
{
	return stepped;
}

static bool next_return_at(struct native_scratch *s, struct pending_return *r)
{
	s->instances = 1;
	if (s->instance >= n_pending)
		return false;
	*r = pending[s->instance++];
	return true;
}

static void forget_memory(void)
{
	for (unsigned int i = 0; i < n_segments; i++)
		free(segments[i].bytes);
	n_segments = n_faults = n_pending = 0;
	probe_page = stepped = 0;
	if (memory >= 0)
		close(memory);
	memory = -1;
}

static void add_segment(const char *body, __u32 size)
{
	struct segment *s = &segments[n_segments];

	if (size < 8 || n_segments == MAX_SEGMENTS)
		exit(2);
	memcpy(&s->address, body, 8);
	s->size = size - 8;
	s->bytes = malloc(s->size + 1);
	memcpy(s->bytes, body + 8, s->size);
	n_segments++;
}

static void add_leaves(const char *body, __u32 size)
{
	__u32 first;

	memcpy(&first, body, 4);
	for (__u32 at = 4; at + UNWIND_LEAF_BYTES <= size && first < MAX_LEAVES; at += UNWIND_LEAF_BYTES, first++) {
		if (!leaves[first])
			leaves[first] = malloc(UNWIND_LEAF_BYTES);
		memcpy(leaves[first], body + at, UNWIND_LEAF_BYTES);
	}
}

static void open_memory(const char *body)
{
	char path[64];
	__u32 pid;

	memcpy(&pid, body, 4);
	snprintf(path, sizeof(path), "/proc/%u/mem", pid);
	memory = open(path, O_RDONLY);
	if (memory < 0)
		exit(3);
}

static void walk(const char *body)
{
	static struct native_scratch scratch;
	static struct native_stack stack, again;
	struct walk_start start;

	memcpy(&start, body, sizeof(start));
	memset(&stack, 0, sizeof(stack));
	memset(&again, 0, sizeof(again));
	/* Remembers the walks before, then this one, then nothing: all the same. */
	walk_native(&start, &cache, &scratch, &stack);
	walk_native(&start, &cache, &scratch, &again);
	if (memcmp(&stack, &again, sizeof(stack)))
		exit(5);
	memset(&again, 0, sizeof(again));
	walk_native(&start, 0, &scratch, &again);
	if (memcmp(&stack, &again, sizeof(stack)))
		exit(6);
	fwrite(&stack, sizeof(stack), 1, stdout);
	fflush(stdout);
}

static void obey(char letter, const char *body, __u32 size)
{
	__u32 number;

	switch (letter) {
	case 'r': /* number, rule */
		generation++;
		memcpy(&number, body, 4);
		memcpy(&rules[number % UNWIND_RULES], body + 4, sizeof(rules[0]));
		break;
	case 'f': /* number, file */
		generation++;
		memcpy(&number, body, 4);
		memcpy(&files[number % UNWIND_FILES], body + 4, sizeof(files[0]));
		break;
	case 'l': /* first leaf, leaves */
		generation++;
		add_leaves(body, size);
		break;
	case 'p': /* process */
		generation++;
		memcpy(&process, body, sizeof(process));
		break;
	case 'c':
		forget_memory();
		break;
	case 'm': /* address, bytes */
		add_segment(body, size);
		break;
	case 'd': /* pid */
		open_memory(body);
		break;
	case 'x': /* address that can not be read */
		memcpy(&faults[n_faults++ % MAX_FAULTS], body, 8);
		break;
	case 'u': /* probe page, address stepped over, pending returns */
		memcpy(&probe_page, body, 8);
		memcpy(&stepped, body + 8, 8);
		n_pending = (size - 16) / sizeof(pending[0]);
		memcpy(pending, body + 16, n_pending * sizeof(pending[0]));
		break;
	case 'w':
		walk(body);
		break;
	default:
		exit(4);
	}
}

int main(void)
{
	static char body[5 << 20];
	char letter;
	__u32 size;

	while (fread(&letter, 1, 1, stdin) == 1) {
		if (fread(&size, 4, 1, stdin) != 1 || size > sizeof(body) || fread(body, 1, size, stdin) != size)
			return 1;
		obey(letter, body, size);
	}
	return 0;
}
