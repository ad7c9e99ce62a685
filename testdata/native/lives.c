/*
 * Processes whose lives a tracer has to follow. Each mode begins by waiting for a
 * line on stdin, so that the tracer is there first.
 *
 *	lives reuse		a child ends and is waited for; another gets its pid,
 *				runs for two seconds and outlives the parent
 *	lives succeed		a child works until a line comes, then another that has its pid
 *	lives crowd N		N children that sleep until stdin closes
 *	lives churn N		N children, one after the other, each with a thread's wait
 *	lives burn SECONDS	nothing but work, so much CPU time
 *	lives threads N		N threads that wait, 50 ms at a time, until stdin closes
 *	lives load N LIBRARY DIRECTORY	N times a copy of the library, as a fresh file, and
 *				a call of its callee_plain
 *	lives second LIBRARY DIRECTORY	calls a copy of the library; from the next line on another,
 *				and from the one after that without the first
 *	lives shapes SECONDS	work under stacks of ever new shapes
 *	lives leave THREADS LEFT	a scope each of so many threads that end in it, so many
 *				of the main thread's; and after another line ten that end
 *	lives scopes N LIBRARY	scopes called step 1, step 2, …, one in a hundred left open
 *				by a thread that ends
 *	lives train N LIBRARY	so many steps of an optimizer, as its scopes tell them
 *
 * With LIVES_COUNT set they say now and then how many of these they have made.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
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

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begun); /* whatever share of a CPU there is */
	do {
		for (int i = 0; i < 100000; i++)
			n += i;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (now.tv_sec - begun.tv_sec + 1e-9 * (now.tv_nsec - begun.tv_nsec) < seconds);
}

static void count(int n, int each)
{
	if (n % each == 0 && getenv("LIVES_COUNT")) {
		printf("%d\n", n);
		fflush(stdout);
	}
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

/* A child that works until a line comes. */
static pid_t works(pid_t as)
{
	pid_t child = fork_as(as);

	if (child == 0)
		for (;;)
			burn(1);
	printf("%d\n", child);
	fflush(stdout);
	if (child < 0)
		exit(3);
	go_on();
	kill(child, SIGKILL);
	waitpid(child, 0, 0);
	return child;
}

static int succeed(void)
{
	works(works(0));
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

static void *waits(void *nothing)
{
	for (;;)
		usleep(50000);
	return nothing;
}

static int threads(int n)
{
	pthread_attr_t small;
	pthread_t thread;
	char c;
	int made = 0;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	while (made < n && !pthread_create(&thread, &small, waits, 0))
		made++;
	printf("%d\n", made);
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}

static volatile int begun;

/* As long as a function that has something to do: one site at its beginning, one at its end. */
__attribute__((noinline)) void scope_begin(char *scope)
{
	begun++;
	*scope = 1;
	begun++;
}

__attribute__((noinline)) void scope_end(char *scope)
{
	begun--;
	*scope = 0;
	begun--;
}

static void *leaves_one(void *scope)
{
	scope_begin(scope);
	return 0;
}

static int leave(int n, int left)
{
	static char scopes[1 << 20];
	char *scope = scopes, c;
	pthread_t thread;

	for (int i = 0; i < n; i++)
		if (!pthread_create(&thread, 0, leaves_one, scope++))
			pthread_join(thread, 0);
	for (int i = 0; i < left; i++)
		scope_begin(scope++);
	puts("left");
	fflush(stdout);
	go_on();
	for (int i = 0; i < 10; i++, scope++) {
		scope_begin(scope);
		scope_end(scope);
	}
	puts("done");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}

struct text {
	const char *data;
	unsigned long length;
};

static void (*scope_enter)(void **, const struct text *, void *);
static void (*scope_leave)(void *);

static void *steps(void *argument)
{
	const struct text *name = argument;
	static char object[64];
	void *scope;

	scope_enter(&scope, name, object);
	return scope;
}

static int scopes(int n, const char *library, const char *all)
{
	void *torch = dlopen(library, RTLD_NOW);
	pthread_t thread;

	if (!torch) {
		fprintf(stderr, "lives: %s\n", dlerror());
		return 1;
	}
	scope_enter = dlsym(torch, "_ZN5torch8autograd8profiler25record_function_enter_newERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKSt8optionalIS6_E");
	scope_leave = dlsym(torch, "_ZN2at14RecordFunction3endEv");
	for (int i = 0; i < n; i++) {
		char text[32], *object = malloc(64);
		struct text name = { text, all ? snprintf(text, sizeof(text), "%s", all) : snprintf(text, sizeof(text), "step %d", i) };
		void *scope;

		if (!all && i % 100 == 0 && !pthread_create(&thread, 0, steps, &name)) {
			pthread_join(thread, 0);
		} else {
			scope_enter(&scope, &name, object);
			scope_leave((char *)scope + 16);
		}
		free(object);
		usleep(all ? 20000 : 2000); // steps within the budget are seen one by one
		count(i, 100);
	}
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
		count(i, 100);
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
		long (*callee)(long, long);

		snprintf(path, sizeof(path), "%s/fresh-%d-%d.so", directory, getpid(), i);
		if (copy(library, path) || !(handle = dlopen(path, RTLD_NOW))) {
			fprintf(stderr, "lives: %s: %s\n", path, dlerror());
			return 1;
		}
		usleep(15000);
		callee = dlsym(handle, "callee_plain");
		if (callee)
			callee(i, 2);
		dlclose(handle);
		unlink(path);
		count(i, 10);
	}
	return 0;
}

/* Opens a copy of the library under a name of its own. */
static void *open_copy(const char *library, const char *directory, const char *name)
{
	char path[PATH_MAX];
	void *handle;

	snprintf(path, sizeof(path), "%s/%s-%d.so", directory, name, getpid());
	if (copy(library, path) || !(handle = dlopen(path, RTLD_NOW))) {
		fprintf(stderr, "lives: %s: %s\n", path, dlerror());
		exit(1);
	}
	puts(name);
	fflush(stdout);
	return handle;
}

static void call_until_a_line(void *library)
{
	long (*callee)(long, long) = dlsym(library, "callee_plain");
	struct pollfd line = { .fd = 0, .events = POLLIN };

	while (poll(&line, 1, 5) == 0)
		callee(1, 2);
	go_on();
}

static int second(const char *library, const char *directory)
{
	void *first = open_copy(library, directory, "first"), *second;

	call_until_a_line(first);
	second = open_copy(library, directory, "second");
	call_until_a_line(second);
	dlclose(first);
	call_until_a_line(second);
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
	if (!strcmp(mode, "succeed"))
		return succeed();
	if (!strcmp(mode, "crowd"))
		return crowd(n);
	if (!strcmp(mode, "churn"))
		return churn(n);
	if (!strcmp(mode, "leave") && argc > 3)
		return leave(n, atoi(argv[3]));
	if (!strcmp(mode, "threads"))
		return threads(n);
	if (!strcmp(mode, "burn")) {
		burn(n);
		return 0;
	}
	if (!strcmp(mode, "load") && argc > 4)
		return load(n, argv[3], argv[4]);
	if (!strcmp(mode, "second") && argc > 3)
		return second(argv[2], argv[3]);
	if (!strcmp(mode, "scopes") && argc > 3)
		return scopes(n, argv[3], 0);
	if (!strcmp(mode, "train") && argc > 3)
		return scopes(n, argv[3], "Optimizer.step#SGD.step");
	if (!strcmp(mode, "shapes"))
		return shapes(n);
	fprintf(stderr, "lives: what?\n");
	return 2;
}
