package process

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Why a process cannot be traced, for errors.Is. Each error that the package
// returns is one sentence that names the pid and says what to do.
var (
	// ErrNotFound: there is no such process.
	ErrNotFound = errors.New("no such process")
	// ErrKernelThread: the pid is a thread of the kernel.
	ErrKernelThread = errors.New("a kernel thread")
	// ErrExited: the process exited before or while it was looked at.
	ErrExited = errors.New("the process exited")
	// ErrPermission: the process is another user's and a capability is missing.
	ErrPermission = errors.New("not permitted")
	// Err32Bit: the program is a 32-bit one.
	Err32Bit = errors.New("a 32-bit program")
	// ErrStatic: the program is statically linked.
	ErrStatic = errors.New("a static program")
	// ErrUnsupported: the program is not an ELF file of x86-64 or arm64.
	ErrUnsupported = errors.New("an unsupported program")
)

// sentences are what each reason says about a pid.
var sentences = map[error]string{
	ErrNotFound:     "there is no process with pid %d: take a pid from ps, in this pid namespace",
	ErrKernelThread: "pid %d is a kernel thread: it runs no user code that could be probed",
	ErrExited:       "pid %d exited: there is nothing left to attach to",
	ErrPermission:   "pid %d belongs to another user: run as root, or with CAP_SYS_PTRACE",
	Err32Bit:        "pid %d runs a 32-bit program: only 64-bit x86-64 and arm64 programs can be probed",
	ErrStatic:       "pid %d runs a static program: it has no libraries that could be probed",
	ErrUnsupported:  "pid %d runs a program that is no ELF file of x86-64 or arm64: it cannot be probed",
}

// Error says why a process cannot be traced. It is one of the sentinel errors
// above and unwraps to the system's error as well, where there was one.
type Error struct {
	PID    int
	Reason error // one of the sentinel errors
	Cause  error // nil where the reason was seen, not reported by the system
}

func (e *Error) Error() string { return fmt.Sprintf(sentences[e.Reason], e.PID) }

func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Cause}
}

// vanished makes the error of a read below /proc/PID of a process that was
// there a moment ago.
func vanished(pid int, doing string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ESRCH):
		return &Error{pid, ErrExited, err}
	case errors.Is(err, fs.ErrPermission):
		return &Error{pid, ErrPermission, err}
	}
	return fmt.Errorf("%s of pid %d: %w", doing, pid, err)
}
