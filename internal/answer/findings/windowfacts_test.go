package findings

import (
	"errors"
	"math"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// launching are processes that launch 100 kernels of 5 µs each, in 10 µs, within a second.
func launching(processes int32, weight float64, method string, traces ...event.MergedTrace) *event.Batch {
	b := &event.Batch{MergedTraces: traces}
	id := int64(0)
	add := func(pid int32, start, took int64, weight float64, call event.Call, detail *event.Detail) int64 {
		id++
		s := event.Span{ID: id, StartNS: 1e15 + start, DurationNS: took, PID: pid, TID: pid, Weight: weight, SequenceNumber: -1,
			Call: &call, Detail: detail}
		if call.Layer == "device" {
			s.TID, s.End = 0, event.EndImported
		}
		b.Spans = append(b.Spans, s)
		return id
	}
	for pid := int32(1); pid <= processes; pid++ {
		rank, stream, gpu := pid-1, int64(7), int32(0)
		b.Processes = append(b.Processes, event.Process{ID: int64(pid), PID: pid, Rank: &rank})
		for i := range int64(100) {
			at := i * 1e6
			launch := add(pid, at, 10_000, weight, event.Call{Layer: "runtime", Category: "launch", Runtime: "cuda", Name: "launch"}, nil)
			add(pid, at+20_000, 5_000, 1, event.Call{Layer: "device", Category: "kernel", Runtime: "cuda", Name: "gemm"},
				&event.Detail{LaunchID: &launch, DeviceID: &gpu, Stream: &stream, DeviceTimeMethod: method})
		}
		add(pid, 0, 1e9, 1, event.Call{Layer: "scope", Name: "all"}, nil)
	}
	return b
}

// TestLaunchesTakeTheirShareOfTheWindow also where a recording in slices has the launches of some of CUPTI's kernels, and
// of one rank of several whose traces were merged.
func TestLaunchesTakeTheirShareOfTheWindow(t *testing.T) {
	trace := func(pid int32) event.MergedTrace {
		return event.MergedTrace{StartNS: 1e15, EndNS: 1e15 + 100e6, PID: pid, Source: "torch.profiler", Method: event.MergedOnDemand,
			DeviceRows: 100, Launched: 100}
	}
	first := 0
	for name, c := range map[string]struct {
		batch *event.Batch
		rank  *int
		want  float64
	}{
		"slices and CUPTI": {launching(1, 20, event.MergedCUPTI), nil, 2},
		"a rank of two":    {launching(2, 1, event.MergedOnDemand, trace(1), trace(2)), &first, 1},
	} {
		d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ended := int64(1e15 + 1e9)
		if err := errors.Join(d.Session(event.Recording{ID: "s", EndedNS: &ended}), d.Write(c.batch), d.Close()); err != nil {
			t.Fatal(err)
		}
		db, err := dataset.Open(d.Dir())
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		r := &Result{}
		if err := r.addWindowFacts(t.Context(), db, c.rank); err != nil {
			t.Fatal(err)
		}
		if f := r.find("small_kernels"); f == nil || math.Abs(*f.WindowPercent-c.want) > 1e-6 {
			t.Errorf("%s: %+v, want %g %%", name, r.Findings, c.want)
		}
	}
}
