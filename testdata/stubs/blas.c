/* A stub of a library that brings kernels of its own, as cuBLAS does: behind its
 * handles is nothing that names them. What is known of such a launch is who made it. */
#include "cuda.h"

#include <stdlib.h>

__attribute__((visibility("default"))) void blas_gemm(CUstream s)
{
	static CUfunction kernel;

	if (!kernel)
		kernel = calloc(64, sizeof(void *));
	cuLaunchKernel(kernel, 4, 1, 1, 64, 1, 1, 0, s, NULL, NULL);
}
