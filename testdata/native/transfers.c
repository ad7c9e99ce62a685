/*
 * Reads and writes, and says how much: of a file in each of two directories, of a socket,
 * of a pipe that a child is slow to fill; of descriptors that are not open, and to
 * addresses that are not there; and at last so much that a budget has no room for it.
 *
 *	transfers DIRECTORY DIRECTORY FLOOD
 *
 * It begins when it reads a line. What it prints is the truth: for each kind a line of
 * calls, failed calls, bytes and nanoseconds, as it has seen them itself.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FILE_BYTES 3000000
#define PIECE 65536

struct truth {
	const char *name;
	long calls, failed, bytes, ns;
};

enum { READ_A, READ_B, WRITE_A, WRITE_B, SYNC_B, SEND, RECEIVE, PIPE, NOT_OPEN, KINDS };

static struct truth truths[KINDS] = {
	[READ_A].name = "read a", [READ_B].name = "read b", [WRITE_A].name = "write a", [WRITE_B].name = "write b", [SYNC_B].name = "sync b",
	[SEND].name = "write socket", [RECEIVE].name = "read socket", [PIPE].name = "read pipe", [NOT_OPEN].name = "read none",
};

static char buffer[PIECE];
static void *volatile nowhere = (void *)8;

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static long note(int kind, long ns, long result)
{
	truths[kind].calls++;
	if (result < 0)
		truths[kind].failed++;
	else
		truths[kind].bytes += result;
	truths[kind].ns += ns;
	return result;
}

#define DO(kind, call) ({ long begin = now(), result = (call); note(kind, now() - begin, result); })

static int file(const char *directory, const char *name, int flags)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, flags, 0600);
	if (fd < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

/* All of a file, in each of the ways there are. */
static void read_file(int kind, int fd)
{
	struct iovec parts[2] = { { buffer, 1000 }, { buffer + 1000, PIECE - 1000 } };
	long at = 0, n;

	while (DO(kind, read(fd, buffer, PIECE)) > 0)
		;
	while ((n = DO(kind, pread(fd, buffer, PIECE, at))) > 0)
		at += n;
	DO(kind, preadv(fd, parts, 2, 0));
	DO(kind, preadv2(fd, parts, 2, 0, 0));
	lseek(fd, 0, SEEK_SET);
	DO(kind, readv(fd, parts, 2));
}

static void write_file(int kind, int fd)
{
	struct iovec parts[2] = { { buffer, 1000 }, { buffer + 1000, PIECE - 1000 } };
	long left = FILE_BYTES;

	while (left > 0)
		left -= DO(kind, write(fd, buffer, left < PIECE ? left : PIECE));
	DO(kind, pwrite(fd, buffer, PIECE, 0));
	DO(kind, writev(fd, parts, 2));
}

/* A child writes when its parent has waited for a while. */
static void slow_pipe(void)
{
	char path[64], line[512], *state;
	int ends[2], fd;

	if (pipe(ends))
		exit(1);
	if (fork() == 0) {
		snprintf(path, sizeof(path), "/proc/%d/stat", getppid());
		do {
			fd = open(path, O_RDONLY);
			line[read(fd, line, sizeof(line) - 1)] = 0;
			close(fd);
			state = strrchr(line, ')');
		} while (!state || state[2] != 'S');
		usleep(50000);
		_exit(write(ends[1], "x", 1) != 1);
	}
	DO(PIPE, read(ends[0], buffer, 1));
	wait(NULL);
}

static void nonsense(int a)
{
	struct rlimit files;
	int far;

	DO(NOT_OPEN, read(-1, buffer, 1));
	DO(NOT_OPEN, read(1 << 30, buffer, 1));
	DO(NOT_OPEN, read(999, buffer, 1));
	DO(READ_A, pread(a, nowhere, PIECE, 0));
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	far = fcntl(a, F_DUPFD, files.rlim_max > 200000 ? 200000 : (int)files.rlim_max - 1);
	if (far >= 0) {
		DO(READ_A, pread(far, buffer, PIECE, 0));
		close(far);
		DO(NOT_OPEN, read(far, buffer, 1));
	}
}

int main(int argc, char **argv)
{
	int a, b, copy, sockets[2], zero, status;
	long flood, n;
	char line[16];

	if (argc != 4) {
		fprintf(stderr, "usage: %s DIRECTORY DIRECTORY FLOOD\n", argv[0]);
		return 2;
	}
	flood = atol(argv[3]);
	a = file(argv[1], "a", O_RDWR | O_CREAT | O_TRUNC);
	b = file(argv[2], "b", O_RDWR | O_CREAT | O_TRUNC);
	copy = file(argv[2], "copy", O_RDWR | O_CREAT | O_TRUNC);
	zero = file("/dev", "zero", O_RDONLY);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return 1;
	puts("ready");
	fflush(stdout);
	if (read(0, line, sizeof(line)) < 1)
		return 1;

	write_file(WRITE_A, a);
	write_file(WRITE_B, b);
	if (DO(SYNC_B, fsync(b)) || DO(SYNC_B, fdatasync(b)))
		return 1;
	lseek(a, 0, SEEK_SET);
	lseek(b, 0, SEEK_SET);
	read_file(READ_A, a);
	read_file(READ_B, b);
	lseek(a, 0, SEEK_SET);
	n = DO(READ_A, sendfile(copy, a, NULL, PIECE));
	note(WRITE_B, 0, n);
	lseek(b, 0, SEEK_SET);
	n = DO(READ_B, copy_file_range(b, NULL, copy, NULL, PIECE, 0));
	note(WRITE_B, 0, n);
	for (int i = 0; i < 10; i++) {
		DO(SEND, send(sockets[0], buffer, 1000, 0));
		DO(RECEIVE, recv(sockets[1], buffer, PIECE, 0));
	}
	DO(RECEIVE, recv(sockets[1], buffer, PIECE, MSG_DONTWAIT));	/* EAGAIN */
	slow_pipe();
	nonsense(a);
	if (fork() == 0) {	/* what a child reads counts as well */
		lseek(b, 0, SEEK_SET);
		while (read(b, buffer, PIECE) > 0)
			;
		_exit(0);
	}
	wait(&status);
	truths[READ_B].bytes += lseek(b, 0, SEEK_END);
	truths[READ_B].calls += (lseek(b, 0, SEEK_END) + PIECE - 1) / PIECE + 1;

	for (int i = 0; i < KINDS; i++)
		printf("%s: %ld %ld %ld %ld\n", truths[i].name, truths[i].calls, truths[i].failed, truths[i].bytes, truths[i].ns);
	fflush(stdout);
	while (flood-- > 0)
		if (read(zero, buffer, 1) != 1)
			_exit(1);
	_exit(WEXITSTATUS(status));
}
