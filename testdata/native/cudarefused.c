/* Calls the real libcuda without a device: every call is refused, and the
 * program says with which status.
 *
 *   cudarefused LIBRARY [wait] FUNCTION…
 *
 * A few calls with arguments first, then each FUNCTION with null for all, but for
 * those that look into a structure before they look for a device. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef uint64_t u;

int main(int argc, char **argv)
{
	void *library = dlopen(argc > 1 ? argv[1] : "libcuda.so.1", RTLD_NOW);
	int next = 2;
	void *p = NULL;
	char host[64];
	static char zeroes[4096];

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (argc > next && strcmp(argv[next], "wait") == 0 && (next++, getchar() == EOF))
		return 1;
#define SAY(name, category, said, signature, ...) \
	printf("call " #name " " category " code=%d " said "\n", ((int (*)signature)dlsym(library, #name))(__VA_ARGS__));
	SAY(cuInit, "context", "", (unsigned), 0)
	SAY(cuMemAlloc_v2, "alloc", "", (void **, size_t), &p, 4096)
	SAY(cuLaunchKernel, "launch", "grid_x=2 grid_y=3 grid_z=4 block_x=32 block_y=5 block_z=6 shared_bytes=700 stream=30464",
	    (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **),
	    NULL, 2, 3, 4, 32, 5, 6, 700, (void *)0x7700, NULL, NULL)
	SAY(cuMemcpyHtoD_v2, "copy", "bytes=64 direction=host_to_device", (u, const void *, size_t), 0x1000, host, 64)
	SAY(cuMemcpyDtoHAsync_v2, "copy", "bytes=48 direction=device_to_host", (void *, u, size_t, void *), host, 0x1000, 48, NULL)
	SAY(cuMemsetD32Async, "set", "bytes=68", (u, unsigned, size_t, void *), 0x1000, 1, 17, NULL)
	SAY(cuStreamSynchronize, "sync", "", (void *), NULL)
	SAY(cuGetProcAddress, "-", "", (const char *, void **, int, u), "cuLaunchKernel", &p, 12000, 0)
	SAY(cuGetProcAddress_v2, "-", "", (const char *, void **, int, u, int *), "cuLaunchKernel", &p, 12000, 0, NULL)
	for (; next < argc; next++) {
		int (*f)(u, u, u, u, u, u, u, u, u, u, u, u) = (__typeof__(f))dlsym(library, argv[next]);
		if (!f) {
			fprintf(stderr, "%s is not there\n", argv[next]);
			return 3;
		}
		printf("call %s - code=%d\n", argv[next], f(strstr(argv[next], "3DPeer") ? (u)zeroes : 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
	}
	printf("end\n");
	return 0;
}
