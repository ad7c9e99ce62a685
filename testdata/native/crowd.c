/* Maps many files as code, or one of them many times, and waits:
 *	crowd COUNT PATTERN...
 * A pattern with %d is so many files, one without is one file so many times. Says
 * how many mappings it has made, and ends with its input. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int map(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY);
	void *p = MAP_FAILED;

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) == 0)
		p = mmap(NULL, st.st_size < 1 << 20 ? st.st_size : 1 << 20, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	close(fd);
	return p != MAP_FAILED;
}

int main(int argc, char **argv)
{
	char path[4096];
	int count = argc > 2 ? atoi(argv[1]) : 0, made = 0;

	for (int a = 2; a < argc; a++) {
		for (int i = 0; i < count; i++) {
			if (snprintf(path, sizeof(path), argv[a], i) >= (int)sizeof(path))
				return 2;
			made += map(path);
		}
	}
	printf("%d\n", made);
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
