/* What stands in front of libcuda to share a GPU or to count: it has one of its
 * functions, and passes on. To be preloaded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include "cuda.h"

static volatile unsigned long passed;

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
			unsigned shared, CUstream s, void **params, void **extra)
{
	static CUresult (*next)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **);
	CUresult result;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "cuLaunchKernel");
	result = next(f, gx, gy, gz, bx, by, bz, shared, s, params, extra);
	passed++;
	return result;
}
