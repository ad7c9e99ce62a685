/*
 * What a training step asks of the stub libcuda: trainstep STEPS [MODE]
 *
 *   step     copies, launches, waits; most kernels were fetched before "ready"
 *   graph    a captured step, replayed
 *   garbage  handles that are none: null, text that is no name, no text at all
 *   library  STEPS launches by a library that is loaded after "ready", and whose
 *            handles name nothing; and one such by the program
 *
 * It waits for a line on standard input after "ready PID", and tells what it did
 * as internal/dev/gpucheck's jobs tell it.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "cuda.h"

#define KERNELS 5

static const char *symbols[KERNELS] = {
	"_Z6gemm_kPKfS0_Pf", "_ZN2at6native12_GLOBAL__N_16vectorEPfi", "triton_poi_fused_add_0", "flash_fwd_kernel", "_Z4latev",
};
static const char *names[KERNELS] = {
	"gemm_k(float const*, float const*, float*)", "at::native::(anonymous namespace)::vector(float*, int)",
	"triton_poi_fused_add_0", "flash_fwd_kernel", "late()",
};
static CUfunction kernel[KERNELS];
static long launches[KERNELS], copies, replays;

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void launch(int k, CUstream s)
{
	cuLaunchKernel(kernel[k], 8, 1, 1, 128, 1, 1, 0, s, NULL, NULL);
	launches[k]++;
}

static void step(CUmodule m, CUstream s)
{
	static char host[4096];

	if (!kernel[4])
		cuModuleGetFunction(&kernel[4], m, symbols[4]);
	cuMemcpyHtoDAsync_v2(0x7000000000, (uint64_t)(uintptr_t)host, sizeof(host), s);
	copies++;
	for (int k = 0; k < KERNELS; k++)
		for (int n = 0; n <= k; n++)
			launch(k, s);
	cuMemcpyDtoHAsync_v2((uint64_t)(uintptr_t)host, 0x7000000000, 4, s);
	copies++;
	cuStreamSynchronize(s);
}

static void graph(CUstream s, int replay)
{
	CUgraph g;
	CUgraphExec e;

	cuStreamBeginCapture_v2(s, 0);
	cuLaunchKernel(kernel[0], 8, 1, 1, 128, 1, 1, 0, s, NULL, NULL);
	cuLaunchKernel(kernel[1], 8, 1, 1, 128, 1, 1, 0, s, NULL, NULL);
	cuStreamEndCapture(s, &g);
	cuGraphInstantiateWithFlags(&e, g, 0);
	for (int i = 0; i < replay; i++) {
		cuGraphLaunch(e, s);
		replays++;
	}
	cuStreamSynchronize(s);
}

/* A handle of our own making: the stub follows both places where it keeps names. */
static CUfunction fake(const char *text)
{
	const char **f = calloc(64, sizeof(*f));

	f[1] = f[17] = text;
	return (CUfunction)f;
}

static void garbage(CUstream s)
{
	CUfunction handles[] = { fake("torn\xff\x01text"), fake("9lives"), fake("") };

	cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
	for (int i = 0; i < 3; i++)
		cuLaunchKernel(handles[i], 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
	cuStreamSynchronize(s);
}

static void library(CUstream s, int calls)
{
	void *blas = dlopen("libblas-stub.so", RTLD_NOW);
	void (*gemm)(CUstream) = blas ? (void (*)(CUstream))dlsym(blas, "blas_gemm") : NULL;

	if (!gemm)
		exit(3);
	usleep(500000); /* the tracer sees what was mapped */
	for (int i = 0; i < calls; i++)
		gemm(s);
	cuLaunchKernel(fake(""), 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
	cuStreamSynchronize(s);
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 10;
	const char *mode = argc > 2 ? argv[2] : "step";
	CUcontext c;
	CUmodule m;
	CUstream s;
	CUkernel k;
	int64_t begin;
	char line[16];

	cuInit(0);
	cuCtxCreate_v2(&c, 0, 0);
	cuModuleLoadData(&m, "stub");
	for (int i = 0; i < 3; i++)
		cuModuleGetFunction(&kernel[i], m, symbols[i]);
	cuLibraryGetKernel(&k, (CUlibrary)m, symbols[3]);
	kernel[3] = (CUfunction)k;
	cuStreamCreate(&s, 0);
	printf("ready %d\n", getpid());
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 2;

	begin = now();
	if (!strcmp(mode, "graph"))
		graph(s, steps);
	else if (!strcmp(mode, "garbage"))
		garbage(s);
	else if (!strcmp(mode, "library"))
		library(s, steps);
	else
		for (int i = 0; i < steps; i++)
			step(m, s);
	printf("{\"told\": {\"begin_ns\": %" PRId64 ", \"end_ns\": %" PRId64 ", \"seconds\": %.6f, \"launches\": {", begin, now(), (now() - begin) / 1e9);
	for (int i = 0, n = 0; i < KERNELS; i++)
		if (launches[i])
			printf("%s\"%s\": %ld", n++ ? ", " : "", names[i], launches[i]);
	printf("}, \"copies\": %ld, \"graph_launches\": %ld, \"versions\": {\"device\": \"stub\"}}}\n", copies, replays);
	fflush(stdout);
	usleep(300000); /* a job lives on for a while after its first launches */
	return 0;
}
