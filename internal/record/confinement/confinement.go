// Package confinement gives up what a recording never needs, for the rest of the process: a
// system call that changes the machine, other processes or who we are is refused by the kernel
// (seccomp), and no program that we start gains privileges (no_new_privs). Whoever gets hold of
// the tracer by way of what a job puts before it does not get these.
//
// A command that ebpfprof starts inherits it: it has to be started before.
package confinement

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Enter confines all threads of this process, and what they start from here on, for ever. Its
// error is that of a kernel without seccomp filters, or names a thread that has a filter of its own; nothing
// is confined then.
func Enter() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	code := filter()
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	// The other threads, of C libraries too, get the filter and no_new_privs with this one.
	thread, _, failed := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program)))
	if failed != 0 {
		return fmt.Errorf("filtering our own system calls: %w", failed)
	}
	if thread != 0 { // seccomp(2): it returns the thread that could not take the filter over, and no error
		return fmt.Errorf("filtering our own system calls: thread %d has another filter", thread)
	}
	return nil
}

// Where seccomp's data have what the filter looks at: include/uapi/linux/seccomp.h.
const (
	numberAt       = 0
	architectureAt = 4
)

// filter refuses the denied calls with EPERM, and all of another architecture's, whose numbers
// mean something else. Calls that are newer than this list are allowed: on some kernels a
// return probe makes one, and a filter that refuses it ends the process.
func filter() []unix.SockFilter {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	end := func(with uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with} }
	n := uint8(len(denied))
	code := []unix.SockFilter{
		load(architectureAt),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: n + 3, K: architecture},
		load(numberAt),
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jt: n + 1, K: otherNumbers},
	}
	for i, number := range denied {
		code = append(code, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: n - uint8(i), K: number})
	}
	return append(code, end(unix.SECCOMP_RET_ALLOW), end(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)))
}

// denied are the calls that a recording never makes.
var denied = append([]uint32{
	// Other processes.
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_PROCESS_MADVISE, unix.SYS_KCMP,
	// The kernel.
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	// Which files there are.
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_TREE,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_UNSHARE, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_MKNODAT,
	// Who we are, and whose secrets we have.
	unix.SYS_SETUID, unix.SYS_SETGID, unix.SYS_SETREUID, unix.SYS_SETREGID, unix.SYS_SETRESUID, unix.SYS_SETRESGID,
	unix.SYS_SETGROUPS, unix.SYS_SETFSUID, unix.SYS_SETFSGID,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	// What most holes of the kernel were reached by.
	unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
}, deniedHere...)
