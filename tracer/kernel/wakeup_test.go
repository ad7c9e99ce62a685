package kernel

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestWakeupFiresAndTimesOut on a pipe, which is polled as a ring buffer is: the
// time is what the goroutine was away, not what the machine is fast at.
func TestWakeupFiresAndTimesOut(t *testing.T) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	end := os.NewFile(uintptr(fds[1]), "wakeup pipe")
	defer end.Close()
	b, err := newWakeupOn(fds[0])
	if err != nil {
		t.Fatal(err)
	}
	defer b.file.Close()

	before := time.Now()
	b.Wait(20 * time.Millisecond)
	if took := time.Since(before); took < 20*time.Millisecond {
		t.Errorf("gave up after %s", took)
	}
	woken := make(chan struct{})
	go func() {
		b.Wait(time.Hour)
		close(woken)
	}()
	end.Write([]byte{1})
	select {
	case <-woken:
	case <-time.After(time.Minute):
		t.Error("it did not wake up")
	}
}
