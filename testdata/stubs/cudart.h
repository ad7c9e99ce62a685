/* The part of the CUDA runtime's interface that the stub has. */
#ifndef STUB_CUDART_H
#define STUB_CUDART_H

#include "cuda.h"

typedef struct { unsigned x, y, z; } dim3;
typedef struct {
	dim3 grid, block;
	size_t shared;
	CUstream stream;
	void *attrs;
	unsigned numAttrs;
} cudaLaunchConfig_t;

int cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared, CUstream s);
int cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *func, void **args);
int cudaLaunchCooperativeKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared, CUstream s);
void __cudaRegisterFunction(void **module, const char *host, char *device, const char *name, int threads, void *a, void *b, void *c, void *d, int *warp);

#endif
