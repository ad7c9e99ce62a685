/* Libraries that are loaded in odd ways.
 *
 *   odd twice LIBRARY       launches through the libcuda that the program has (5),
 *                           and through a second copy of LIBRARY in a namespace of
 *                           its own, dlmopen (3)
 *   odd mapped FILE…        maps the first page of each file executable, as a
 *                           loader does that is not through yet, and launches (5)
 *   odd torn -              kernels whose names end with their page, go on over
 *                           the next one, which is not there, are no text or cut,
 *                           by calls that fetch them and by handles
 *
 * It says "ready PID" before it launches, and waits for a line. */
#define _GNU_SOURCE
#include "cuda.h"
#include "expect.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>

static CUfunction kernel(CUresult (*load)(CUmodule *, const void *), CUresult (*get)(CUfunction *, CUmodule, const char *), const char *name)
{
	CUmodule m;
	CUfunction f;

	load(&m, "image");
	get(&f, m, name);
	return f;
}

static void twice(const char *library)
{
	void *copy = dlmopen(LM_ID_NEWLM, library, RTLD_NOW);
	__typeof__(cuLaunchKernel) *launch;
	CUfunction f, g;

	if (!copy || !(launch = (__typeof__(cuLaunchKernel) *)dlsym(copy, "cuLaunchKernel")) || launch == cuLaunchKernel) {
		fprintf(stderr, "odd: %s\n", dlerror());
		exit(3);
	}
	ready(1);
	f = kernel(cuModuleLoadData, cuModuleGetFunction, "first");
	g = kernel((__typeof__(cuModuleLoadData) *)dlsym(copy, "cuModuleLoadData"), (__typeof__(cuModuleGetFunction) *)dlsym(copy, "cuModuleGetFunction"), "second");
	for (int i = 0; i < 5; i++)
		cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	for (int i = 0; i < 3; i++)
		launch(g, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static void mapped(char **files)
{
	CUfunction f;

	for (; *files; files++) {
		int file = open(*files, O_RDONLY);

		if (file < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED) {
			perror(*files);
			exit(3);
		}
	}
	ready(1);
	f = kernel(cuModuleLoadData, cuModuleGetFunction, "first");
	for (int i = 0; i < 5; i++)
		cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

/* A page with the name at its very end, and nothing behind it. */
static char *at_the_edge(const char *name, size_t bytes)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED || munmap(page + 4096, 4096)) {
		perror("odd");
		exit(3);
	}
	return memcpy(page + 4096 - bytes, name, bytes);
}

static CUfunction handle_of(const char *name)
{
	uint64_t *handle = calloc(1, 256);

	handle[1] = (uint64_t)(uintptr_t)name;
	return (CUfunction)handle;
}

static void torn(void)
{
	enum { LONG = 5000 };
	char empty[1] = ""; /* a literal may lie in a page that was never read */
	char *page = at_the_edge("", 0), *long_name = malloc(LONG + 1);
	CUfunction handles[] = {
		handle_of(at_the_edge("edge_of_a_page", 15)),	/* whole */
		handle_of(at_the_edge("unterminated", 12)),	/* whose end is not there */
		handle_of(page + 4096),				/* not there at all */
		handle_of("mid\xffway"), handle_of(long_name),
	};
	const char *fetched[] = { at_the_edge("fetched_at_the_edge", 20), "\xff\xfe\x01 bytes", "sch\xc3\xb6n", "cut\xc3", empty, long_name };
	CUmodule m;
	CUfunction f;

	memset(long_name, 'k', LONG);
	long_name[LONG] = 0;
	ready(1);
	cuModuleLoadData(&m, "image");
	for (size_t i = 0; i < sizeof(handles) / sizeof(*handles); i++)
		cuLaunchKernel(handles[i], 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	for (size_t i = 0; i < sizeof(fetched) / sizeof(*fetched); i++) {
		cuModuleGetFunction(&f, m, fetched[i]);
		cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	}
	/* Results that go nowhere. */
	cuCtxGetDevice(NULL);
	cuMemAlloc_v2(NULL, 64);
	usleep(300000); /* the handles are read while they are there */
}

int main(int argc, char **argv)
{
	setenv("STUB_INSTANT", "1", 1);
	if (argc < 3)
		return 2;
	if (strcmp(argv[1], "twice") == 0)
		twice(argv[2]);
	else if (strcmp(argv[1], "torn") == 0)
		torn();
	else
		mapped(argv + 2);
	printf("end\n");
	return 0;
}
