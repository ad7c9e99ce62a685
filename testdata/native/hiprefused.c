/* Calls the real libamdhip64 of this machine, which has no device: every call is
 * refused, and the program says with which status.
 *
 *   hiprefused LIBRARY [wait] */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct { unsigned x, y, z; } dim3;

int main(int argc, char **argv)
{
	void *library = dlopen(argc > 1 ? argv[1] : "libamdhip64.so.5", RTLD_NOW);
	void *p = NULL, *stream = NULL;
	dim3 one = { 1, 1, 1 };

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
#define CALL(name, signature, ...) ((int (*)signature)dlsym(library, #name))(__VA_ARGS__)
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (argc > 2 && strcmp(argv[2], "wait") == 0 && getchar() == EOF)
		return 1;
#define SAY(name, category, signature, ...) printf("call " #name " " category " code=%d\n", CALL(name, signature, __VA_ARGS__));
	SAY(hipInit, "context", (unsigned), 0)
	SAY(hipSetDevice, "context", (int), 0)
	SAY(hipMalloc, "alloc", (void **, size_t), &p, 4096)
	SAY(hipHostMalloc, "alloc", (void **, size_t, unsigned), &p, 8192, 0)
	SAY(hipStreamCreate, "stream", (void **), &stream)
	SAY(hipMemcpy, "copy", (void *, void *, size_t, int), &p, &stream, 8, 1)
	SAY(hipLaunchKernel, "launch", (void *, dim3, dim3, void **, size_t, void *), (void *)&one, one, one, NULL, 0, NULL)
	SAY(hipDeviceSynchronize, "sync", (void))
	SAY(hipFree, "free", (void *), (void *)0x1000)
	printf("end\n");
	return 0;
}
