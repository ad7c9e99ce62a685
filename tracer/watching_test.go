package tracer

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Where watching costs more than its part of the budget, reads and writes are not measured
// any more and waits are sampled: a thread that sleeps all the time, whose wait would have a
// row at its end alone, has samples then, and so have two that have one CPU between them. Each
// change has a warning.
func TestWaitsAreSampledWhereWatchingThemCostsTooMuch(t *testing.T) {
	needKernel(t)
	const loops = "sleep 300 & while :; do :; done & while :; do :; done & while :; do /bin/true; done"
	job := exec.Command("taskset", "-c", "0", "/bin/sh", "-c", loops)
	job.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Kill(-job.Process.Pid, syscall.SIGKILL); job.Wait() })
	sink := &livesSink{processes: map[int64]Process{}}
	var began int64
	asleep, ready := false, false
	recordInto(t, sink, Options{PIDs: []int{job.Process.Pid}, Follow: true, Frequency: 99, OffCPU: time.Millisecond, Budget: 1e-9},
		func(s *Session, stop func()) {
			seen(t, s, "sample of the process that sleeps, and of one that waits for its CPU", func() bool {
				for _, w := range sink.warned("waits") {
					began = w.TSNS
				}
				if began == 0 {
					return false
				}
				for _, row := range sink.samples {
					if row.State != OffCPU || row.TSNS < began {
						continue
					}
					asleep = asleep || strings.Contains(row.Syscall, "nanosleep")
					ready = ready || row.Cause == "preempted" && row.ReadyNS == row.WeightNS
				}
				return asleep && ready
			})
			stop()
		})
	if n := len(sink.warned("waits")); n != 1 {
		t.Errorf("%d warnings that waits are sampled, want 1", n)
	}
	for _, row := range sink.samples {
		if row.WeightNS <= 0 {
			t.Fatalf("a sample that stands for nothing: %+v", row)
		}
	}
}
