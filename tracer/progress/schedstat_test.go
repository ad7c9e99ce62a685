package progress

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestAThreadsTimesAreThoseOfItsProcessAndEndWithIt(t *testing.T) {
	c := exec.Command("sh", "-c", "while :; do :; done")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	tid := int32(c.Process.Pid)
	var s schedstats
	if _, ok := s.ran(1); !ok {
		t.Skip("this kernel keeps no schedstat")
	}
	before := time.Duration(-1)
	for range 3 {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			ran, ok := s.ran(tid)
			if _, waits := s.waited(tid); !ok || !waits || ran < before || time.Now().After(deadline) {
				t.Fatalf("it ran for %s, %s before (%t, %t)", ran, before, ok, waits)
			}
			if ran > before { // others may have the CPUs for a while
				before = ran
				break
			}
		}
	}
	c.Process.Kill()
	c.Wait()
	for range 2 {
		if ran, ok := s.ran(tid); ok {
			t.Errorf("a process that has ended ran for %s", ran)
		}
	}
	if len(s.files) != 1 { // the first process's
		t.Errorf("%d files are open", len(s.files))
	}
	if _, ok := s.ran(-1); ok {
		t.Error("thread -1 has run")
	}
}

func TestFilesOfFewThreadsAreOpen(t *testing.T) {
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skip("this kernel keeps no schedstat")
	}
	s := schedstats{files: map[int32]*os.File{}}
	for tid := range int32(mostOpen) {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		s.files[-1-tid] = f
	}
	if _, ok := s.ran(int32(os.Getpid())); !ok || len(s.files) != 1 {
		t.Errorf("%d files are open", len(s.files))
	}
}
