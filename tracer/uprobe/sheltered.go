package uprobe

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// A thread that has a SIGKILL pending can't take probes out: the kernel finds the page of
// a breakpoint by get_user_pages, which gives up at once then, and logs “failed to
// unregister, leaking uprobe” (uprobe_unregister_nosync in kernel/events/uprobes.c). Such
// breakpoints stay in the job for as long as it lives. A tracer that is killed while
// thousands of sites go in or out in one system call would leave many: what the kernel
// undoes of half a link, it undoes in the thread that is being killed.
//
// So these calls are made by a process of their own, which a SIGKILL of the tracer does
// not reach. It has the tracer's memory and descriptors, and makes one call.

// sheltered makes a system call that comes to its end even if the tracer is killed
// meanwhile; what that had open is closed after it. What the arguments point to is
// pinned by the caller. Where the system allows no further process, the call is made as
// any other.
func sheltered(number, a, b, c uintptr) (uintptr, error) {
	// What it stays if somebody kills that process.
	result := new(uintptr)
	*result = negative(syscall.EINTR)
	pid, err := cloneMasked(number, a, b, c, result)
	if err != nil {
		value, _, errno := syscall.Syscall(number, a, b, c)
		if errno != 0 {
			return 0, errno
		}
		return value, nil
	}
	for {
		if _, err := unix.Wait4(pid, nil, unix.WALL, nil); err != unix.EINTR {
			break
		}
	}
	value := *result
	runtime.KeepAlive(result)
	if value >= negative(4095) {
		return 0, syscall.Errno(-value)
	}
	return value, nil
}

// negative is how the kernel returns an error.
func negative(e syscall.Errno) uintptr { return -uintptr(e) }

// cloneMasked starts the process with every signal blocked, for good: Go's handlers need
// a thread of Go's.
func cloneMasked(number, a, b, c uintptr, result *uintptr) (int, error) {
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before); err != nil {
		return 0, err
	}
	// No signal tells of its end: Go's programs get no SIGCHLD that they did not ask for.
	pid := clone(unix.CLONE_VM|unix.CLONE_FILES, number, a, b, c, result)
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil); err != nil {
		return 0, err
	}
	if pid >= negative(4095) {
		return 0, syscall.Errno(-pid)
	}
	return int(pid), nil
}

// clone starts a process that leaves the tracer's process group, for what kills all of
// that, makes a system call, stores what it returned, and ends. It runs on the caller's
// stack pointer, and touches no stack.
func clone(flags, number, a, b, c uintptr, result *uintptr) (pid uintptr)
