/* A part of cudacalls.c: work of known length, and launches in a loop. */

static void times(void)
{
	CUstream other;
	CUevent from, to, mark;
	float ms;

	cuStreamCreate(&other, 1);
	cuEventCreate(&from, 0);
	cuEventCreate(&to, 0);
	cuEventCreate(&mark, 0);
	for (int i = 0; i < 5; i++) { /* waits */
		cuLaunchKernel(f, 3000, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
		cuLaunchKernel(f, 1000, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
		cuLaunchKernel(f, 500, 1, 1, 1, 1, 1, 0, other, NULL, NULL);
		cuMemcpyHtoDAsync_v2(1, 2, 100000, other);
		if (i % 2)
			cuStreamSynchronize(s), cuStreamSynchronize(other);
		else
			cuCtxSynchronize();
	}
	for (int i = 0; i < 5; i++) { /* the job's own timing */
		cuEventRecord(from, s);
		cuLaunchKernel(f, 2000, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
		cuEventRecord(to, s);
		cuLaunchKernel(f, 4000, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
		cuEventSynchronize(to);
		cuEventElapsedTime(&ms, from, to);
		cuStreamSynchronize(s);
	}
	for (int i = 0; i < 5; i++) { /* polls, of an event in front and of one behind */
		cuLaunchKernel(f, 2000, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
		cuEventRecord(mark, s);
		cuLaunchKernel(f, 1500, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
		cuEventRecord(to, s);
		while (cuEventQuery(mark) == CUDA_ERROR_NOT_READY)
			usleep(300);
		while (cuEventQuery(to) == CUDA_ERROR_NOT_READY)
			usleep(300);
	}
	for (int i = 0; i < 5; i++) { /* waits for one alone, of that stream or of one that waits for it */
		cuLaunchKernel(f, 2000, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
		if (i == 4) {
			cuEventRecord(to, s);
			cuStreamWaitEvent(other, to, 0);
			cuStreamSynchronize(other);
		} else if (i % 2)
			cuCtxSynchronize();
		else
			cuStreamSynchronize(s);
	}
	cuLaunchKernel(f, 1000, 1, 1, 1, 1, 1, 0, 0, NULL, NULL); /* the default stream, and a copy that waits for it */
	cuMemcpyDtoH_v2(1, 2, 50000);
	cuLaunchKernel(f, 1000, 1, 1, 1, 1, 1, 0, s, NULL, NULL); /* not waited for: no bound */
	usleep(20000);
}

/* The last stream is the default stream. */
#define STREAM CUstream
#define EVENT CUevent
#define NEW_STREAM(s, i) ((i) == STREAMS - 1 ? (*(s) = 0) : (cuStreamCreate(s, 1), NULL))
#define NEW_EVENT(e) cuEventCreate(e, 0)
#define GIVE(s, us) cuLaunchKernel(f, us, 1, 1, 1, 1, 1, 0, s, NULL, NULL)
#define GIVE_MORE(s, bytes) ((s) ? cuMemcpyHtoDAsync_v2(1, 2, bytes, s) : cuMemcpyDtoH_v2(1, 2, bytes))
#define RECORD(e, s) cuEventRecord(e, s)
#define STREAM_WAITS(s, e) cuStreamWaitEvent(s, e, 0)
#define ASK_EVENT(e) cuEventQuery(e)
#define ASK_STREAM(s) cuStreamQuery(s)
#define WAIT_EVENT(e) cuEventSynchronize(e)
#define WAIT_STREAM(s) cuStreamSynchronize(s)
#define WAIT_ALL() cuCtxSynchronize()
#define TIME_BETWEEN(ms, from, to) cuEventElapsedTime(ms, from, to)
#include "randomwork.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void loop(long times, long period)
{
	double began = now();

	for (long i = 0; i < times; i++) {
		cuLaunchKernel(f, 1, 1, 1, 128, 1, 1, 0, s, NULL, NULL);
		while (period && now() < began + (double)i * period)
			;
	}
	printf("%.1f ns\n", (now() - began) / times);
	fflush(stdout);
}
