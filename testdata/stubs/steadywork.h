/* Threads that make numbered calls, some thousand a second each, from before
 * the tracer comes until after it has gone: until a line of input. Each then says
 * what its last number was:
 *
 *   made TID LAST */
#ifndef STUB_STEADYWORK_H
#define STUB_STEADYWORK_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STEADY_THREADS = 3 };

static volatile int steady_over;
static void (*steady_call)(uint64_t number);

static void *steady_thread(void *unused)
{
	uint64_t number = 0;

	(void)unused;
	while (!steady_over) {
		steady_call(++number);
		usleep(50);
	}
	printf("made %ld %lu\n", syscall(SYS_gettid), number);
	return NULL;
}

static inline void steady_work(void (*call)(uint64_t number))
{
	pthread_t threads[STEADY_THREADS];

	steady_call = call;
	for (int i = 0; i < STEADY_THREADS; i++)
		pthread_create(&threads[i], NULL, steady_thread, NULL);
	usleep(100000); /* they are at it */
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (getchar() != '\n')
		;
	steady_over = 1;
	for (int i = 0; i < STEADY_THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("end\n");
	fflush(stdout);
}

#endif
