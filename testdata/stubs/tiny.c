/* A runtime never seen before, libtiny.so, and a program that calls it: a new
 * runtime is to be no more than a table (tracer/tiny_test.go has it). */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef LIBRARY
struct kernel { const char *name; };

__attribute__((noinline)) int tiny_kernel(struct kernel **out, const char *name)
{
	if (!name[0])
		return 7;
	*out = malloc(sizeof(**out));
	(*out)->name = name;
	return 0;
}

__attribute__((noinline)) int tiny_launch(long queue, struct kernel *k, unsigned blocks, unsigned threads)
{
	__asm__ volatile("" ::"r"(queue), "r"(k), "r"(blocks), "r"(threads));
	return 0;
}

__attribute__((noinline)) int tiny_memory(void **out, size_t bytes)
{
	*out = malloc(bytes);
	return 0;
}

__attribute__((noinline)) int tiny_return(void *memory)
{
	free(memory);
	return 0;
}
#else
int tiny_kernel(void **out, const char *name);
int tiny_launch(long queue, void *kernel, unsigned blocks, unsigned threads);
int tiny_memory(void **out, size_t bytes);
int tiny_return(void *memory);

int main(void)
{
	void *kernel = NULL, *memory = NULL;

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	tiny_kernel(&kernel, "double_it");
	tiny_kernel(&memory, "");
	for (unsigned i = 1; i <= 100; i++)
		tiny_launch(5, kernel, i, 64);
	tiny_memory(&memory, 4096);
	tiny_return(memory);
	return 0;
}
#endif
