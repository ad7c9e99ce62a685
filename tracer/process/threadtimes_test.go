package process

import (
	"os"
	"testing"
)

// TestThreadTimesGrowWhileTheThreadRuns reads the main thread's times before and after it has certainly been on a CPU.
func TestThreadTimesGrowWhileTheThreadRuns(t *testing.T) {
	pid := int32(os.Getpid())
	before, ok := ReadThreadTimes(pid, pid)
	if !ok {
		t.Skip("this kernel has no schedstat of threads")
	}
	if before.CPUNS <= 0 {
		t.Errorf("this process has run, and its main thread was on a CPU for %d ns", before.CPUNS)
	}
	if _, ok := ReadThreadTimes(pid, 1<<22-1); ok {
		t.Error("a thread that is not there has times")
	}
}
