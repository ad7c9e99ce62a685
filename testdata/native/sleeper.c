/* Says that it is ready and sleeps: a static program to attach to. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	sleep(argc > 1 ? (unsigned)atoi(argv[1]) : 60);
	return 0;
}
