/* Says what a function of a library returns, a line for each that it reads:
 *	answers LIBRARY FUNCTION */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int (*function)(void) = library ? (int (*)(void))dlsym(library, argv[2]) : NULL;
	char line[64];

	if (!function) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	while (fgets(line, sizeof(line), stdin)) {
		printf("%d\n", function());
		fflush(stdout);
	}
	return 0;
}
