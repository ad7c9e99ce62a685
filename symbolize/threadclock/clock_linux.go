// Package threadclock reads the CPU time of the calling thread: what limits work by
// what it costs and not by how busy the machine is.
//
// The package is no part of the public API: it may change with any version.
package threadclock

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now is the CPU time of the calling thread since it started, 0 where the kernel does not
// tell. Two readings are of one thread only between runtime.LockOSThread and its unlock.
func Now() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
