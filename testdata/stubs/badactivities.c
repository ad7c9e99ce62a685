/* What somebody can do who has the library's file: badactivities LIBRARY COUNT calls its function with whatever is no chunk. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	void (*hand)(const void *, uint64_t, uint64_t) = library ? (void (*)(const void *, uint64_t, uint64_t))dlsym(library, "ebpfprof_activities") : NULL;
	static uint8_t noise[8192];
	uint32_t words[8] = { 0x31435045, 8192, 0xffffffff, 130001 };

	if (!hand) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = i * 7 + i / 251;
	for (int n = atoi(argv[2]); n > 0; n--) {
		hand(NULL, 64, 0);
		hand((void *)0xffffffff81000000, 4096, 1);
		hand((void *)0x10, 8192, 2);
		hand(noise, 8193, 3);
		hand(noise, UINT64_MAX, 4);
		hand(noise, 0, 5);
		hand(noise, sizeof(noise), 6);
		memcpy(noise, words, sizeof(words));
		hand(noise, sizeof(noise), UINT64_MAX);
	}
	return 0;
}
