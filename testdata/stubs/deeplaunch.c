/*
 * Launches from the depth at which a framework makes them: below some Python
 * frames (internal/dev/bench/jobs/deeplaunch.py) a run of native ones, as the
 * operator, its dispatch and the runtime library are, and at their end four
 * places that launch in turn.
 */
#include <string.h>
#include <time.h>
#include "cuda.h"

#define NATIVE 12	/* frames between Python and the launches */

static CUfunction function;
static CUstream stream;

int deep_setup(void)
{
	CUcontext context;
	CUmodule module;

	cuInit(0);
	cuDevicePrimaryCtxRetain(&context, 0);
	cuCtxSetCurrent(context);
	cuStreamCreate(&stream, 0);
	cuModuleLoadData(&module, "image");
	return cuModuleGetFunction(&function, module, "_Z5scalePfi");
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

/* A frame of the usual size, which the compiler can not do without. */
#define FRAME(call)                                             \
	({                                                      \
		volatile char room[160];                        \
		long r;                                         \
								\
		room[0] = 0;                                    \
		r = (call);                                     \
		__asm__ volatile("" : : "r"(room) : "memory");  \
		r;                                              \
	})

#define PLACE(name) \
	static __attribute__((noinline)) long name(void) { return FRAME(cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, stream, NULL, NULL)); }
PLACE(first)
PLACE(second)
PLACE(third)
PLACE(fourth)

static __attribute__((noinline)) long bottom(long times)
{
	for (long i = 0; i < times; i += 4)
		first(), second(), third(), fourth();
	return 0;
}

static __attribute__((noinline)) long down(long times, int frames)
{
	return frames ? FRAME(down(times, frames - 1)) : FRAME(bottom(times));
}

/* ns a launch. */
double deep_launches(long times)
{
	double began = now();

	down(times, NATIVE);
	return (now() - began) / times;
}
