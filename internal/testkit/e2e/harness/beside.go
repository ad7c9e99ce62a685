package harness

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// traced has a lock for each library that tests trace.
var traced sync.Map

// Beside lets a test run beside others, none of which traces the same library: where
// other processes map a file as well, its probes are put in process by process, and
// tests mean the usual way, unless they say so. How many run at a time is -parallel. A
// test that waits for a library counts among them; so the Makefile lets more begin than
// the machine has CPUs.
//
// What counts comes out right at any speed. A test that compares times does not call
// this, and has the machine alone.
func Beside(t *testing.T, libraries ...string) {
	t.Helper()
	NeedKernel(t)
	BesideAfter(t, func() {}, libraries...)
}

// Together lets a test run beside the others of one that is not parallel, which has the
// machine alone else.
func Together(t *testing.T) {
	t.Helper()
	t.Parallel()
}

// BesideAfter is Beside for a test that prepares something which takes long: others may
// trace its libraries meanwhile.
func BesideAfter(t *testing.T, prepare func(), libraries ...string) {
	t.Helper()
	t.Parallel()
	prepare()
	if len(libraries) == 0 {
		return
	}
	began := time.Now()
	// In one order everywhere: no two tests wait for each other.
	for _, library := range slices.Compact(slices.Sorted(slices.Values(libraries))) {
		lock, _ := traced.LoadOrStore(library, &sync.Mutex{})
		lock.(*sync.Mutex).Lock()
		t.Cleanup(lock.(*sync.Mutex).Unlock)
	}
	t.Logf("waited %.1f s for its turn", time.Since(began).Seconds()) // internal/dev/testrun takes it off the time
}
