package tracer

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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
