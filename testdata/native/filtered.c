/* filtered PROGRAM ARGUMENT…: runs a program under a seccomp filter that allows all
 * but the system calls that the kernel's trampolines for probes make (335,
 * uretprobe; 336, uprobe): for those it kills, as strict filters do that were
 * written before these calls were. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 335, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 336, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(*code), code };

	if (argc < 2)
		return 2;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
		perror("filtered");
		return 3;
	}
	execv(argv[1], argv + 1);
	perror(argv[1]);
	return 4;
}
