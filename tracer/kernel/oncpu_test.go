package kernel

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOnCPUOfRunsWhereTheProcessDoesAndComesBack(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, inside, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	ran := false
	onCPUOf(os.Getpid(), func() {
		ran = true
		unix.SchedGetaffinity(0, &inside)
	})
	unix.SchedGetaffinity(0, &after)
	if !ran || inside.Count() != 1 {
		t.Errorf("ran: %v, on %d CPUs", ran, inside.Count())
	}
	if after != before {
		t.Errorf("the thread keeps to %d CPUs afterwards, it had %d", after.Count(), before.Count())
	}
}

func TestOnCPUOfAProcessThatIsGoneRunsAnyway(t *testing.T) {
	ran := false
	onCPUOf(1<<22+1, func() { ran = true })
	if !ran {
		t.Error("it did not run")
	}
}
