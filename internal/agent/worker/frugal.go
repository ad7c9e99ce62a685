package worker

import (
	"os"
	"runtime/debug"
	"time"
)

// A worker takes most memory in its first seconds, when it plans probes and makes unwind
// tables of all that the job has mapped, and then watches for months.
const (
	// frugalGC is how much more than what is in use a worker's heap may be, percent. It
	// allocates so little while it watches that collecting more often costs nothing.
	frugalGC = 50
	// settling is after how long of a session its tables are made.
	settling = 20 * time.Second
	// anchorBuffer is the size of the kernel's rings at level anchor, in bytes: all of
	// their pages are mapped twice once they were written round.
	anchorBuffer = 2 << 20
)

// frugal has the process keep little, unless its environment says otherwise; what it
// returns undoes that.
func frugal() (undo func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(frugalGC)
	return func() { debug.SetGCPercent(before) }
}

// settled gives what a session's beginning took back to the system, when that is over.
func settled() *time.Timer { return time.AfterFunc(settling, debug.FreeOSMemory) }
