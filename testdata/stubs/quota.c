/* A library in front of libcuda, as those are that divide a GPU between jobs: it
 * has some of the driver's functions and calls the real ones inside. To be
 * preloaded. It is told apart by a name that begins as libcuda's. */
#define _GNU_SOURCE
#include "cuda.h"

#include <dlfcn.h>

CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n)
{
	CUresult (*real)(CUdeviceptr *, size_t) = dlsym(RTLD_NEXT, "cuMemAlloc_v2");
	CUresult status = real ? real(p, n) : 999;

	__asm__ volatile("" ::: "memory"); /* not a jump */
	return status;
}
