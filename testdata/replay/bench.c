/*
 * Times the allocator of a plan beside glibc's on the same requests:
 * bench PLAN SEQUENCE. SEQUENCE is a step as REPLAY_LOG writes it: "a ID BYTES" and
 * "f ID", ids from 0. Prints nanoseconds a request, its free included: the median
 * of 21 rounds of each.
 */
#define _GNU_SOURCE
#include <string.h>
#include <time.h>

#include "replay.h"

struct action {
	long id; /* of an allocation; ~id of a free */
	size_t bytes;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* what others run meanwhile does not count */
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	enum { ROUNDS = 21, STEPS = 50 };
	static struct replay plan;
	struct action *actions = NULL;
	size_t count = 0, room = 0, allocations = 0;
	double times[2][ROUNDS];
	char kind;
	void **live;
	FILE *f;

	if (argc != 3 || replay_load(&plan, argv[1]) || !(f = fopen(argv[2], "r")))
		return 2;
	for (struct action a; fscanf(f, " %c %ld", &kind, &a.id) == 2;) {
		a.bytes = 0;
		if (kind == 'a' && fscanf(f, "%zu", &a.bytes) != 1)
			return 2;
		if (count == room)
			actions = realloc(actions, (room = room ? 2 * room : 1024) * sizeof(a));
		if (kind == 'a')
			allocations++;
		else
			a.id = ~a.id;
		actions[count++] = a;
	}
	live = calloc(allocations + 1, sizeof(*live));
	for (int round = 0; round < ROUNDS; round++) {
		double begun = now();

		for (int step = 0; step < STEPS; step++) {
			replay_begin(&plan);
			for (size_t i = 0; i < count; i++) {
				if (actions[i].id < 0) {
					void *p = live[~actions[i].id];

					if (!replay_owns(&plan, p))
						free(p);
				} else {
					void *p = replay_alloc(&plan, actions[i].bytes);

					if (!p && posix_memalign(&p, 64, actions[i].bytes))
						return 1;
					live[actions[i].id] = p;
					__asm__ volatile("" ::"r"(p) : "memory");
				}
			}
		}
		times[0][round] = (now() - begun) / STEPS / allocations;
		begun = now();
		for (int step = 0; step < STEPS; step++) {
			for (size_t i = 0; i < count; i++) {
				if (actions[i].id < 0) {
					free(live[~actions[i].id]);
				} else {
					void *p = NULL;

					if (posix_memalign(&p, 64, actions[i].bytes))
						return 1;
					live[actions[i].id] = p;
				}
			}
		}
		times[1][round] = (now() - begun) / STEPS / allocations;
	}
	for (int k = 0; k < 2; k++)
		qsort(times[k], ROUNDS, sizeof(double), ascending);
	printf("replay %.1f glibc %.1f requests %zu served %lu\n", times[0][ROUNDS / 2], times[1][ROUNDS / 2], allocations, plan.served);
	return 0;
}
