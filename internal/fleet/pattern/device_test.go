package pattern

import (
	"fmt"
	"math"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// launched is a launch whose work took so long at the least and at the most (ns; -1: nothing
// said so).
func launched(call *event.Call, at, least, most int64, onStream int64) event.Span {
	s := event.Span{PID: 7, TID: 7, Call: call, StartNS: at, DurationNS: 5e3, Detail: &event.Detail{Stream: &onStream}}
	if most >= 0 {
		s.Detail.DeviceTimeLoNS, s.Detail.DeviceTimeHiNS = &least, &most
	}
	return s
}

// window is a second of a process that trains, with these calls.
func window(t *testing.T, spans ...event.Span) map[string]Pattern {
	t.Helper()
	c := New(100)
	optimize := &event.Call{Layer: "scope", Name: "Optimizer.step#SGD.step"}
	for k := range int64(100) {
		c.Write(&event.Batch{Spans: []event.Span{{PID: 7, TID: 7, Call: optimize, StartNS: k * 10e6, DurationNS: 1e6}}})
		c.Write(&event.Batch{Samples: []event.Sample{{PID: 7, TID: 7, TSNS: k * 10e6, State: event.OnCPU, WeightNS: 10e6}}})
	}
	c.Write(&event.Batch{Spans: spans})
	all := map[string]Pattern{}
	for _, p := range c.Flush() {
		if p.Basis != Device {
			continue
		}
		if _, twice := all[p.Name]; twice {
			t.Errorf("%s is there twice", p.Name)
		}
		all[p.Name] = p
	}
	if again := c.Flush(); len(again) != 0 {
		t.Errorf("the next window has %v", again)
	}
	return all
}

var (
	gemm  = &event.Call{Layer: "runtime", Category: "launch", Runtime: "cuda", Name: "gemm"}
	moves = &event.Call{Layer: "runtime", Category: "copy", Runtime: "cuda", Name: "cuMemcpyHtoDAsync_v2"}
	asks  = &event.Call{Layer: "runtime", Category: "event", Runtime: "cuda", Name: "cuEventElapsedTime"}
)

func TestWhatADeviceDidHasBoundsAndNoPoint(t *testing.T) {
	all := window(t,
		launched(gemm, 1e6, 100e6, 200e6, 1), launched(gemm, 300e6, 0, 50e6, 1), // one after the other
		launched(gemm, 310e6, 60e6, 70e6, 2), // on another stream, perhaps at the same time
		launched(gemm, 700e6, 0, -1, 1),      // nothing said when it was through
		launched(moves, 400e6, 20e6, 20e6, 1),
		launched(asks, 500e6, 400e6, 400e6, 1)) // is told what the work took, and is none
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
	p, is := all["gemm"]
	if !is || p.Class != Kernel || p.Count != 3 || !near(p.BetaLo, 0.1) || !near(p.BetaHi, 0.32) || p.Beta != p.BetaLo || p.MeanNS != 0 ||
		p.LongestNS != 0 {
		t.Errorf("%+v", p)
	}
	c, is := all[moves.Name]
	if !is || c.Class != Copy || !near(c.BetaLo, 0.02) || c.BetaLo != c.BetaHi || c.MeanNS != 20e6 || c.LongestNS != 20e6 {
		t.Errorf("%+v", c)
	}
	if len(all) != 2 {
		t.Errorf("%v", all)
	}
}

// More than all of the time is nothing, and of what was seen in slices there was more.
func TestBoundsOfADeviceAreShares(t *testing.T) {
	many := make([]event.Span, 50)
	for i := range many {
		many[i] = launched(gemm, int64(i)*1e6, 0, 900e6, 1) // all were through at the end
	}
	if p := window(t, many...)["gemm"]; p.BetaHi != 1 || p.BetaLo != 0 {
		t.Errorf("%+v", p)
	}
	sliced := launched(gemm, 1e6, 5e6, 5e6, 1)
	sliced.SliceID = 3
	if p := window(t, sliced)["gemm"]; p.BetaHi != 1 || p.BetaLo != 0.005 {
		t.Errorf("%+v", p)
	}
}

// Kernels are called what a job likes: their number is bounded, and their time adds up.
func TestKernelsBeyondTheLimitAreOne(t *testing.T) {
	var spans []event.Span
	for i := range int64(2 * mostKernels) {
		spans = append(spans, launched(&event.Call{Layer: "runtime", Category: "launch", Name: fmt.Sprint("k", i)}, i*1e5, 1e4, 2e4, i))
	}
	spans = append(spans, launched(gemm, 5e8, 100e6, 100e6, 1)) // is above the limit
	all := window(t, spans...)
	if len(all) != toldKernels+1 {
		t.Errorf("%d patterns", len(all))
	}
	var count int64
	most := 0.0
	for _, p := range all {
		count, most = count+p.Count, most+p.BetaHi
	}
	if count != 2*mostKernels+1 || math.Abs(most-(2*mostKernels*2e4+100e6)/1e9) > 1e-6 {
		t.Errorf("%d launches, %g", count, most)
	}
}
