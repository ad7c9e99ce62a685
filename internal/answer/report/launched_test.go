package report

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// A step launches its kernels early and the device is a step behind: busy time and kernels are those of the
// launches, whenever they ran; idle time is the clock's.
func TestAStepHasTheKernelsThatItLaunched(t *testing.T) {
	db := made(t, func(d *output.Dataset) error {
		var spans []event.Span
		add := func(at, took int64, s event.Span) int64 {
			s.ID, s.StartNS, s.DurationNS, s.PID, s.Weight, s.SequenceNumber, s.End = int64(len(spans))+1, 1e15+at*1e6, took*1e6, 7, 1, -1,
				event.EndImported
			spans = append(spans, s)
			return s.ID
		}
		device, stream := int32(0), int64(7)
		for i := range int64(12) {
			at := 100 * i
			add(at, 99, event.Span{TID: 8, Call: &event.Call{Layer: "scope", Name: "ProfilerStep#1"}})
			name, took := "short", int64(30)
			if i == 5 {
				name, took = "long", 150
			}
			for k := range int64(2) {
				launch := add(at+10+k, 1, event.Span{TID: 8, Call: &event.Call{Layer: "runtime", Category: "launch", Name: "cudaLaunchKernel"}})
				ran := at + 20 + k*took
				if i > 5 { // what follows waits for the long ones
					ran += 300
				}
				add(ran, took, event.Span{Call: &event.Call{Layer: "device", Category: "kernel", Name: name},
					Detail: &event.Detail{LaunchID: &launch, DeviceID: &device, Stream: &stream}})
			}
		}
		return d.Write(&event.Batch{Spans: spans})
	})
	for step, want := range map[int]struct {
		busy  float64
		name  string
		calls int64
	}{2: {60, "short", 2}, 5: {300, "long", 2}, 6: {60, "short", 2}} {
		r, err := Build(t.Context(), db, Options{Step: &step})
		if err != nil {
			t.Fatal(err)
		}
		if r.Device == nil || r.Device.BusyMS != want.busy || r.Device.ComputationMS != want.busy {
			t.Errorf("step %d: %+v, want %v ms", step, r.Device, want.busy)
		}
		if len(r.Kernels) != 1 || r.Kernels[0].Name != want.name || int64(r.Kernels[0].Calls) != want.calls ||
			r.Kernels[0].DeviceMS != want.busy {
			t.Errorf("step %d: %+v", step, r.Kernels)
		}
	}
}
