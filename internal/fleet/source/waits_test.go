package source

import (
	"math"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Of a step of 10 ms its thread waits 6 ms in a collective: recorded each, or sampled every 50 ms, every other sample
// without a stack. A wait for something else is none of it.
func TestStepsWaitAsLongWhetherWaitsAreRecordedOrSampled(t *testing.T) {
	wait := symbolize.Frame{Kind: symbolize.Native, Function: "c10d::Work::wait", Module: "libtorch_cpu.so"}
	other := scripted.Python("load", "train.py", 9)
	for name, sampled := range map[string]bool{"recorded": false, "sampled": true} {
		t.Run(name, func(t *testing.T) {
			j := scripted.New()
			if sampled {
				j.SampleWaits()
			}
			for i := range 500 {
				step := j.Now
				j.Backward(3e6)
				j.Optimize(1e6)
				switch {
				case !sampled:
					j.Sample(event.OffCPU, 6e6, wait).Cause = event.CauseSyscall
				case i%5 == 0 && i%25 < 20: // three of five looks find it in a collective, one elsewhere, one on a CPU
					frame := wait
					if i%25 == 15 {
						frame = other
					}
					s := j.Sample(event.OffCPU, 50e6, frame)
					if s.Cause = event.CauseSyscall; i%2 == 1 {
						s.StackID = nil
					}
				}
				j.Wait(step + 10e6 - j.Now)
			}
			db, err := dataset.Open(scripted.Write(t, j))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			u, err := Read(t.Context(), db, "train")
			if err != nil {
				t.Fatal(err)
			}
			mean := 0.0
			for _, s := range u.Steps {
				mean += float64(s.WaitNS) / 1e6 / float64(len(u.Steps))
			}
			if len(u.Steps) < 490 || math.Abs(mean-6) > 0.3 {
				t.Errorf("%d steps wait for %.2f ms each, want 6", len(u.Steps), mean)
			}
		})
	}
}
