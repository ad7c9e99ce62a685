/* Launches kernels as nvcc's host code does: by functions of the program that
 * stand for them. Three are known by their symbols, a fourth, which has none, is
 * registered by name while it is recorded. One launch passes the driver directly. */
#include "cudart.h"
#include "expect.h"

/* nvcc gives the host function the kernel's own symbol. */
__attribute__((noinline)) void _Z5scalePfi(void) { __asm__ volatile(""); }
__attribute__((noinline)) void _Z3addPfS_i(void) { __asm__ volatile(" "); }
__attribute__((noinline)) void _Z4waitv(void) { __asm__ volatile("\t"); }

int main(void)
{
	static char unnamed[16]; /* no function's address */
	dim3 grid = { 2, 1, 1 }, block = { 32, 1, 1 };
	cudaLaunchConfig_t config = { { 3, 1, 1 }, { 64, 1, 1 }, 0, NULL, NULL, 0 };

	setenv("STUB_INSTANT", "1", 1);
	ready(1);
	for (int i = 0; i < 5; i++)
		cudaLaunchKernel((void *)_Z5scalePfi, grid, block, NULL, 0, NULL);
	for (int i = 0; i < 3; i++)
		cudaLaunchKernelExC(&config, (void *)_Z3addPfS_i, NULL);
	for (int i = 0; i < 2; i++)
		cudaLaunchCooperativeKernel((void *)_Z4waitv, grid, block, NULL, 0, NULL);
	__cudaRegisterFunction(NULL, unnamed, NULL, "_Z5laterv", 0, NULL, NULL, NULL, NULL, NULL);
	for (int i = 0; i < 4; i++)
		cudaLaunchKernel(unnamed, grid, block, NULL, 0, NULL);
	cuLaunchKernel(calloc(64, sizeof(void *)), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	printf("end\n");
	return 0;
}
