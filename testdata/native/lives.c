/*
 * Processes whose lives a tracer has to follow. Each mode begins by waiting for a
 * line on stdin, so that the tracer is there first.
 *
 *	lives reuse		a child ends and is waited for; another gets its pid,
 *				runs for two seconds and outlives the parent
 *	lives crowd N		N children that sleep until stdin closes
 *	lives churn N		N children, one after the other, each with a thread's wait
 *	lives burn SECONDS	nothing but work
 *	lives load N LIBRARY DIRECTORY	N times a copy of the library, as a fresh file
 *	lives shapes SECONDS	work under stacks of ever new shapes
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void burn(double seconds)
{
	struct timespec begun, now;
	volatile unsigned long n = 0;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	do {
		for (int i = 0; i < 100000; i++)
			n += i;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - begun.tv_sec + 1e-9 * (now.tv_nsec - begun.tv_nsec) < seconds);
}

static void go_on(void)
{
	char line[16];

	if (!fgets(line, sizeof(line), stdin))
		exit(2);
}

/* A fork that asks for a pid; 0 for any. */
static pid_t fork_as(pid_t pid)
{
	struct clone_args args = { .exit_signal = SIGCHLD };

	if (pid) {
		args.set_tid = (uintptr_t)&pid;
		args.set_tid_size = 1;
	}
	return syscall(SYS_clone3, &args, sizeof(args));
}

static int reuse(void)
{
	pid_t first = fork_as(0), second;

	if (first == 0) {
		burn(0.3);
		_exit(0);
	}
	waitpid(first, 0, 0);
	usleep(200000);
	second = fork_as(first);
	if (second == 0) {
		burn(2);
		_exit(0);
	}
	if (second != first) {
		perror("another process has the pid by now");
		return 3;
	}
	printf("%d\n", first);
	fflush(stdout);
	return 0;
}

static int crowd(int n)
{
	char c;

	for (int i = 0; i < n; i++) {
		if (fork() == 0) {
			while (read(0, &c, 1) > 0)
				;
			_exit(0);
		}
	}
	printf("%d\n", n);
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}

static int churn(int n)
{
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			usleep(2000);
			_exit(0);
		}
		waitpid(pid, 0, 0);
	}
	printf("%d\n", n);
	fflush(stdout);
	return 0;
}

static int copy(const char *from, const char *to)
{
	char buffer[65536];
	FILE *in = fopen(from, "r"), *out = fopen(to, "w");
	size_t n;

	if (!in || !out)
		return -1;
	while ((n = fread(buffer, 1, sizeof(buffer), in)) > 0)
		fwrite(buffer, 1, n, out);
	fclose(in);
	return fclose(out);
}

static int load(int n, const char *library, const char *directory)
{
	char path[PATH_MAX];

	for (int i = 0; i < n; i++) {
		void *handle;

		snprintf(path, sizeof(path), "%s/fresh-%d-%d.so", directory, getpid(), i);
		if (copy(library, path) || !(handle = dlopen(path, RTLD_NOW))) {
			fprintf(stderr, "lives: %s: %s\n", path, dlerror());
			return 1;
		}
		usleep(15000);
		dlclose(handle);
		unlink(path);
	}
	return 0;
}

static __attribute__((noinline)) void left(unsigned long way, int depth);

static __attribute__((noinline)) void right(unsigned long way, int depth)
{
	if (depth == 0)
		burn(0.0002);
	else if (way & 1)
		right(way >> 1, depth - 1);
	else
		left(way >> 1, depth - 1);
	__asm__ volatile("" ::: "memory");	/* no jump: a frame each */
}

static __attribute__((noinline)) void left(unsigned long way, int depth)
{
	if (depth == 0)
		burn(0.0002);
	else if (way & 1)
		right(way >> 1, depth - 1);
	else
		left(way >> 1, depth - 1);
	__asm__ volatile("" ::: "memory");
}

static int shapes(int seconds)
{
	time_t end = time(0) + seconds;

	srandom(1);
	while (time(0) < end)
		left((unsigned long)random() << 31 | random(), 32);
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0;

	puts("ready");
	fflush(stdout);
	go_on();
	if (!strcmp(mode, "reuse"))
		return reuse();
	if (!strcmp(mode, "crowd"))
		return crowd(n);
	if (!strcmp(mode, "churn"))
		return churn(n);
	if (!strcmp(mode, "burn")) {
		burn(n);
		return 0;
	}
	if (!strcmp(mode, "load") && argc > 4)
		return load(n, argv[3], argv[4]);
	if (!strcmp(mode, "shapes"))
		return shapes(n);
	fprintf(stderr, "lives: what?\n");
	return 2;
}
