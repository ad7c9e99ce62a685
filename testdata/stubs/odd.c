/* Libraries that are loaded in odd ways.
 *
 *   odd twice LIBRARY       launches through the libcuda that the program has (5),
 *                           and through a second copy of LIBRARY in a namespace of
 *                           its own, dlmopen (3)
 *   odd mapped FILE…        maps the first page of each file executable, as a
 *                           loader does that is not through yet, and launches (5)
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

int main(int argc, char **argv)
{
	setenv("STUB_INSTANT", "1", 1);
	if (argc < 3)
		return 2;
	if (strcmp(argv[1], "twice") == 0)
		twice(argv[2]);
	else
		mapped(argv + 2);
	printf("end\n");
	return 0;
}
