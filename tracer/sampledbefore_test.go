package tracer

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// threadSink keeps the times of threads too.
type threadSink struct {
	recordingSink
	threads []Thread
}

// Write implements event.Sink.
func (s *threadSink) Write(b *event.Batch) error {
	s.threads = append(s.threads, b.Threads...)
	return s.recordingSink.Write(b)
}

// TestSamplesAreTakenBeforeFilesAreLookedInto: that takes seconds the first time, and the job is not to go unseen meanwhile;
// what its threads spend in that time is in their rows.
func TestSamplesAreTakenBeforeFilesAreLookedInto(t *testing.T) {
	needKernel(t)
	job := exec.Command("python3", "-c", "while True: pass")
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { job.Process.Kill(); job.Wait() })
	const used = 200 * time.Millisecond
	var looked int64
	pid := int32(job.Process.Pid)
	sink := &threadSink{}
	session, err := Open(t.Context(), Options{
		PIDs: []int{job.Process.Pid}, Level: LevelSamples, Frequency: 99, BufferBytes: 1 << 20,
		looking: func() {
			before, _ := process.ReadThreadTimes(pid, pid)
			for now := before; now.CPUNS-before.CPUNS < int64(used); now, _ = process.ReadThreadTimes(pid, pid) {
				time.Sleep(10 * time.Millisecond)
			}
			looked = time.Now().UnixNano()
		},
	}, sink)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := session.Run(ctx); err != nil {
		t.Fatal(err)
	}
	early := 0
	for i := range sink.samples {
		if sink.samples[i].TSNS < looked {
			early++
		}
	}
	if early == 0 {
		t.Errorf("none of %d samples is from the time before the files were looked into", len(sink.samples))
	}
	spent := int64(0)
	for _, row := range sink.threads {
		if row.TID == pid && row.CPUNS != nil {
			spent = *row.CPUNS
		}
	}
	if spent < int64(used) {
		t.Errorf("the thread has %s of a CPU, of the %s that it spent before the files were looked into", time.Duration(spent), used)
	}
}
