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
	slices := newSlicing()
	b, err := newWakeupOn(fds[0], slices.begun)
	if err != nil {
		t.Fatal(err)
	}
	defer b.file.Close()

	before := time.Now()
	b.Wait(20 * time.Millisecond)
	if took := time.Since(before); took < 20*time.Millisecond {
		t.Errorf("gave up after %s", took)
	}
	for by, wake := range map[string]func(){
		"a record":       func() { end.Write([]byte{1}) },
		"a slice":        func() { slices.set(true) },
		"the next slice": func() { slices.set(false); slices.set(true) },
	} {
		woken := make(chan struct{})
		go func() {
			b.Wait(time.Hour)
			close(woken)
		}()
		wake()
		select {
		case <-woken:
		case <-time.After(time.Minute):
			t.Errorf("%s did not wake it up", by)
		}
	}
	if slices.set(true); !slices.DetailOn() {
		t.Error("a slice is on, and is not said to be")
	}
}
