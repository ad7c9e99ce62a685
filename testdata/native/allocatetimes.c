/*
 * Calls PyTorch's CPU allocator as its own code does (c10::Allocator::allocate, and the
 * deleter of what that returns), and takes the time of each call. For internal/dev/bench.
 *
 * A DataPtr is {void *data; deleter; void *context; device}, where libstdc++ has the
 * deleter before the context, and comes back through a hidden first argument.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stddef.h>
#include <time.h>

struct data_ptr {
	void *data;
	void (*deleter)(void *);
	void *context;
	int64_t device;
};

struct allocator {
	/* Two destructors come first. */
	void (**methods)(struct data_ptr *, struct allocator *, size_t);
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* What count calls of each size took, one after the other by size. What two looks at the clock take is taken off. */
int allocate_times(struct allocator *(*get)(void), const uint64_t *sizes, int kinds, int count,
		   uint64_t *allocated_ns, uint64_t *freed_ns)
{
	struct allocator *allocator = get();
	uint64_t clock = ~0ull;

	for (int i = 0; i < 1000; i++) {
		uint64_t t = now(), took = now() - t;

		clock = took < clock ? took : clock;
	}
	for (int i = 0; i < count; i++) {
		for (int k = 0; k < kinds; k++) {
			struct data_ptr p = { 0 };
			uint64_t t0 = now(), t1, t2, t3;

			allocator->methods[2](&p, allocator, sizes[k]);
			t1 = now();
			if (!p.data || p.context != p.data)
				return 1;
			*(volatile char *)p.data = 1;
			t2 = now();
			p.deleter(p.context);
			t3 = now();
			allocated_ns[k * count + i] = t1 - t0 - clock;
			freed_ns[k * count + i] = t3 - t2 - clock;
		}
	}
	return 0;
}
