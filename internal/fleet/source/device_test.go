package source

import (
	"math"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Of a dataset, launches whose time is bounded are patterns with both bounds, and what a
// device has measured is one with a point.
func TestKernelsOfADatasetArePatterns(t *testing.T) {
	j := scripted.New()
	for range 60 {
		step := j.Now
		j.Load(1e6)
		s := j.Call("runtime", "launch", "flash_attention", 1e6)
		least, most, stream := int64(1e6), int64(4e6), int64(7)
		s.Detail = &event.Detail{DeviceTimeLoNS: &least, DeviceTimeHiNS: &most, Stream: &stream, DeviceTimeMethod: "bounded"}
		j.Launch(1e6, "kernel", "gemm", j.Now, 2e6)
		j.Backward(5e6)
		j.Optimize(1e6)
		j.Wait(step + 10e6 - j.Now)
		end := j.Now
		j.Now = step
		j.Sample(event.OnCPU, 10e6, scripted.Python("step", "train.py", 3))
		j.Now = end
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
	bounds := map[string][2]float64{}
	for _, p := range u.Patterns {
		if p.Basis == pattern.Device {
			bounds[string(p.Class)+" "+p.Name] = [2]float64{p.BetaLo, p.BetaHi}
		}
	}
	for name, want := range map[string][2]float64{"kernel flash_attention": {0.1, 0.4}, "kernel gemm": {0.2, 0.2}} {
		if got, is := bounds[name]; !is || math.Abs(got[0]-want[0]) > 0.01 || math.Abs(got[1]-want[1]) > 0.01 {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if len(bounds) != 2 {
		t.Errorf("%v", bounds)
	}
}
