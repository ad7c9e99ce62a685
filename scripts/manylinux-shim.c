// What Debian's libstdc++.a wants of a C library newer than manylinux_2_28 has.
#include <stdint.h>
#include <sys/random.h>

// crtbegin.o has it where the compiler's own start files are linked. A program's is null.
__attribute__((visibility("hidden"))) void *__dso_handle = 0;

// glibc 2.32: never said to be single-threaded, libstdc++ uses atomics.
char __libc_single_threaded = 0;

// glibc 2.36.
uint32_t arc4random(void) {
	uint32_t random;
	while (getrandom(&random, sizeof random, 0) != sizeof random) {
	}
	return random;
}
