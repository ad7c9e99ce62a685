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
	return shelter(number, a, b, c).wait()
}

// call is a system call that a process of its own makes.
type call struct {
	pid    int // 0: the tracer made it, and has the result
	result *uintptr
	err    error
	ended  bool
	usage  unix.Rusage // of the process, once it has ended
}

// shelter begins a call.
func shelter(number, a, b, c uintptr) *call {
	// What the result stays if that process is killed.
	made := &call{result: new(uintptr)}
	*made.result = negative(syscall.EINTR)
	pid, err := cloneMasked(number, a, b, c, made.result)
	if err == nil {
		made.pid = pid
		return made
	}
	made.ended = true
	value, _, errno := syscall.Syscall(number, a, b, c)
	*made.result = value
	if errno != 0 {
		made.err = errno
	}
	return made
}

// look reports whether the call is over, or waits for it.
func (c *call) look(wait bool) bool {
	options := unix.WALL
	if !wait {
		options |= unix.WNOHANG
	}
	for !c.ended {
		pid, err := unix.Wait4(c.pid, nil, options, &c.usage)
		if err == unix.EINTR {
			continue
		}
		if pid == 0 && err == nil {
			return false
		}
		c.ended = true
	}
	return true
}

// wait returns what the call did.
func (c *call) wait() (uintptr, error) {
	c.look(true)
	value := *c.result
	runtime.KeepAlive(c.result)
	if c.err != nil {
		return 0, c.err
	}
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
