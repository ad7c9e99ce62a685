/* The allocator that a plan makes: shared by the library and its benchmark. */
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

struct replay_request {
	size_t bytes;
	long offset;
};

struct replay {
	char *region;
	size_t size;
	struct replay_request *requests;
	size_t count, next;
	unsigned long from, steps, served, elsewhere, peak;
};

static inline void replay_begin(struct replay *r)
{
	r->next = 0;
	r->steps++;
}

/* Request k gets region + x_k, or NULL if it is not planned so. */
static inline void *replay_alloc(struct replay *r, size_t bytes)
{
	size_t k = r->next++;

	if (k < r->count && r->requests[k].offset >= 0 && bytes <= r->requests[k].bytes) {
		size_t end = (size_t)r->requests[k].offset + bytes;

		r->served++;
		if (end > r->peak)
			r->peak = end;
		return r->region + r->requests[k].offset;
	}
	r->elsewhere++;
	return NULL;
}

static inline int replay_owns(struct replay *r, void *p)
{
	return (uintptr_t)p - (uintptr_t)r->region < r->size;
}

/* Reads a plan; not 0 if that fails. */
static inline int replay_load(struct replay *r, const char *path)
{
	FILE *f = fopen(path, "r");
	size_t size, room = 0;
	struct replay_request q;
	void *region;

	if (!f)
		return -1;
	if (fscanf(f, "region %zu from %lu", &size, &r->from) != 2)
		goto bad;
	while (fscanf(f, "%zu %ld", &q.bytes, &q.offset) == 2) {
		if (q.offset >= 0 && (size_t)q.offset + q.bytes > size)
			goto bad;
		if (r->count == room) {
			room = room ? 2 * room : 1024;
			r->requests = realloc(r->requests, room * sizeof(q));
			if (!r->requests)
				goto bad;
		}
		r->requests[r->count++] = q;
	}
	region = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (region == MAP_FAILED)
		goto bad;
	r->region = region;
	r->size = size;
	fclose(f);
	return 0;
bad:
	r->count = 0;
	fclose(f);
	return -1;
}
