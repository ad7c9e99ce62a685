package agent

import (
	"os/exec"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// unhurried is how much later than asked for the sleeps of a worker may end. It works a
// moment some times a second, and in each the Go runtime's monitor looks every 20 µs whether
// it is stuck: a fifth of what a watching worker took. Slices of the budget are milliseconds
// long, and weighed by how long they were.
const unhurried = 500 * time.Microsecond

// startUnhurried starts a program whose threads all have that slack: it is inherited by who
// is started (PR_SET_TIMERSLACK(2const)), and this thread's own again after that.
func startUnhurried(c *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(unhurried.Nanoseconds()), 0, 0, 0); err == nil {
		defer unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) // the default
	}
	return c.Start()
}
