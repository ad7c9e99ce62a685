package tracer

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/bpf"
)

func TestLooksAtWaitsRestByWhatTheyUsedOfACPU(t *testing.T) {
	for _, c := range []struct{ used, want time.Duration }{
		{100 * time.Microsecond, 0},                             // twenty looks a second
		{time.Millisecond, 200*time.Millisecond - sampledEvery}, // of the share of 0.5 %
		{time.Minute, time.Second - sampledEvery},
	} {
		if got := restAfterLook(c.used, 0.05).Round(time.Microsecond); got != c.want {
			t.Errorf("a look that used %s rests for %s, want %s", c.used, got, c.want)
		}
	}
}

func TestAWaitThatWakesWithinItsCallIsOneWait(t *testing.T) {
	at := func(sp, pc, switches uint64) *bpf.TasksTaskRegisters {
		r := &bpf.TasksTaskRegisters{Switches: switches}
		r.Start.Sp, r.Start.Pc = sp, pc
		return r
	}
	if !sameCall(at(1, 2, 3), at(1, 2, 9)) {
		t.Error("a call that woke in between is taken for another one")
	}
	if sameCall(at(1, 2, 3), at(1, 4, 3)) || sameCall(at(1, 2, 3), at(8, 2, 3)) {
		t.Error("another place in the code is taken for the same one")
	}
}

// TestALookDoesNotStandBack: its thread is like any other's while it looks, and as before afterwards.
func TestALookDoesNotStandBack(t *testing.T) {
	runtime.LockOSThread() // and never back: the thread ends with this goroutine
	nice := func() int {
		kernels, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		if err != nil {
			t.Fatal(err)
		}
		return 20 - kernels
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, ownNice); err != nil {
		t.Fatal(err)
	}
	restore := promptly()
	if got := nice(); got != 0 && unix.Geteuid() == 0 {
		t.Errorf("nice %d while it looks", got)
	}
	restore()
	if got := nice(); got != ownNice {
		t.Errorf("nice %d afterwards, want %d", got, ownNice)
	}
}
