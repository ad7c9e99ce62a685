/* Maps one file as code and, when it is told to, another file or another part of
 * memory in its place, as a hostile job may:
 *	swap FILE OTHER
 * "ready" when FILE is mapped, "swapped" after the first line on stdin; at its end
 * it ends. A line "call" calls the first exported byte of FILE again. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void *place(const char *path, void *at, size_t *size)
{
	struct stat st;
	int fd = open(path, O_RDONLY);
	void *p;

	if (fd < 0 || fstat(fd, &st) < 0)
		return MAP_FAILED;
	if (!*size)
		*size = st.st_size;
	p = mmap(at, *size, PROT_READ | PROT_EXEC, MAP_PRIVATE | (at ? MAP_FIXED : 0), fd, 0);
	close(fd);
	return p;
}

int main(int argc, char **argv)
{
	char line[64];
	size_t size = 0;
	void *at;

	if (argc != 3)
		return 2;
	at = place(argv[1], NULL, &size);
	if (at == MAP_FAILED) {
		perror(argv[1]);
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, "swap\n") == 0) {
			if (place(argv[2], at, &size) == MAP_FAILED) {
				perror(argv[2]);
				return 1;
			}
			puts("swapped");
		}
		fflush(stdout);
	}
	return 0;
}
