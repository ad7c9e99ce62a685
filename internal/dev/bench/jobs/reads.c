/*
 * Reads a file again and again, and says how long a read takes.
 *
 *	reads FILE BYTES COUNT cpu|each
 *
 * For each line of standard input it makes COUNT reads of BYTES, from the beginning again
 * where the file ends, and prints nanoseconds a read: of the thread's CPU time over all of
 * them, or by a clock before and after each.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv)
{
	long bytes = argc == 5 ? atol(argv[2]) : 0, count = argc == 5 ? atol(argv[3]) : 0;
	int fd = argc == 5 ? open(argv[1], O_RDONLY) : -1, each = argc == 5 && !strcmp(argv[4], "each");
	char *buffer = malloc(bytes), line[64];

	if (fd < 0 || bytes < 1 || count < 1 || !buffer)
		return 1;
	memset(buffer, 1, bytes);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		double spent = 0, begin = now(CLOCK_THREAD_CPUTIME_ID);
		long at = 0, n;

		for (long i = 0; i < count; i++) {
			double before = each ? now(CLOCK_MONOTONIC) : 0;

			n = pread(fd, buffer, bytes, at);
			if (each)
				spent += now(CLOCK_MONOTONIC) - before;
			if (n < 0)
				return 1;
			at = n < bytes ? 0 : at + n;
		}
		if (!each)
			spent = now(CLOCK_THREAD_CPUTIME_ID) - begin;
		printf("%f ns\n", spent / count);
		fflush(stdout);
	}
	return 0;
}
