/* Calls each site of sites.S in a loop and prints the time of a call, for the
 * price of a probe on it.
 *
 *   loop [CALLS [SITE]] [wait]    e.g. loop 200000 site_push wait */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void site_nop5(void), site_push(void), site_endbr64(void), site_sub(void), site_jmp(void),
	site_mov(void);

static const struct {
	const char *name;
	void (*call)(void);
} sites[] = {
	{"site_nop5", site_nop5}, {"site_push", site_push}, {"site_endbr64", site_endbr64},
	{"site_sub", site_sub},   {"site_jmp", site_jmp},   {"site_mov", site_mov},
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	int wait = argc > 1 && strcmp(argv[argc - 1], "wait") == 0;
	int words = argc - wait;
	long calls = words > 1 ? atol(argv[1]) : 1000000;
	const char *only = words > 2 ? argv[2] : NULL, *comma = "";

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (wait && getchar() == EOF)
		return 1;
	printf("{\"truth\": {\"pid\": %d, \"calls\": %ld, \"ns\": {", (int)getpid(), calls);
	for (size_t i = 0; i < sizeof(sites) / sizeof(sites[0]); i++) {
		void (*volatile call)(void) = sites[i].call;
		double begin = now();

		if (only && strcmp(only, sites[i].name) != 0)
			continue;
		for (long n = 0; n < calls; n++)
			call();
		printf("%s\"%s\": %.2f", comma, sites[i].name, (now() - begin) / (double)calls);
		comma = ", ";
	}
	printf("}}}\n");
	return 0;
}
