package symbolize

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/threadclock"
)

// What others' work takes is no reason to give up a file's names.
func TestDemanglingIsLimitedByItsOwnCPUTime(t *testing.T) {
	var busy atomic.Bool
	busy.Store(true)
	defer busy.Store(false)
	for range 4 * runtime.GOMAXPROCS(0) {
		go func() {
			for busy.Load() {
			}
		}()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f, cpu, wall := &File{}, threadclock.Now(), time.Now()
	for range 20_000 {
		f.demangle("_ZN2at6native12_GLOBAL__N_14gemmIfEEvPT_S4_l")
	}
	cpu, took := threadclock.Now()-cpu, time.Since(wall)
	if f.slow == 0 || f.slow > cpu {
		t.Errorf("%s counted of %s of CPU time, %s by the wall clock", f.slow, cpu, took)
	}
	if f.slow = maxSlow + 1; f.demangle("_Z1fv") != "_Z1fv" {
		t.Error("a file's names take more than their time")
	}
}
