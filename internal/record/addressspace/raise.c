//go:build linux

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

// ebpfprof run -- true fails under ulimit -v 2000000 and succeeds under 2500000 (x86-64, Go 1.26); the rest is for the
// tables of a real job.
#define NEEDED ((rlim_t)3 << 30)

struct rlimit ebpfprof_address_space;
int ebpfprof_address_space_raised;

// Before Go's runtime: it reserves address space and cannot start without.
__attribute__((constructor)) static void raise_address_space(int argc, char **argv)
{
	struct rlimit was, all = {RLIM_INFINITY, RLIM_INFINITY}, soft;

	if (getrlimit(RLIMIT_AS, &was) != 0 || was.rlim_cur == RLIM_INFINITY)
		return;
	soft = (struct rlimit){was.rlim_max, was.rlim_max};
	if (setrlimit(RLIMIT_AS, &all) == 0 || (was.rlim_max > was.rlim_cur && setrlimit(RLIMIT_AS, &soft) == 0)) {
		ebpfprof_address_space = was;
		ebpfprof_address_space_raised = 1;
	}
	if (getrlimit(RLIMIT_AS, &soft) != 0 || soft.rlim_cur == RLIM_INFINITY || soft.rlim_cur >= NEEDED)
		return;
	dprintf(STDERR_FILENO,
		"ebpfprof: the address space is limited to %llu MiB (ulimit -v) and ebpfprof needs %llu MiB: raise the limit, and "
		"to keep it for the command alone use: ebpfprof run -- sh -c 'ulimit -v %llu; exec COMMAND'\n",
		(unsigned long long)(soft.rlim_cur >> 20), (unsigned long long)(NEEDED >> 20), (unsigned long long)(was.rlim_cur >> 10));
	_exit(argc > 1 && strcmp(argv[1], "run") == 0 ? 125 : 1);
}
