package report

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// evaluated is a recording of 60 steps of 20 ms with four products each, of which six slices of two steps were recorded, and
// after the 30th an evaluation of 300 ms that no slice saw: 65 products of 4 ms, and what samples of 5 ms show of it.
func evaluated(t *testing.T, evaluation bool) *dataset.DB {
	t.Helper()
	d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := &event.Batch{Stacks: []event.Stack{
		{ID: 5, Status: event.StackComplete, Frames: []event.Frame{{Kind: "op", Function: "aten::addmm", Offset: -1},
			{Kind: "op", Function: "aten::linear", Offset: -1}}},
		{ID: 6, Status: event.StackComplete, Frames: []event.Frame{{Kind: "op", Function: "aten::argmax", Offset: -1}}}}}
	id, at, begin := int64(0), int64(0), int64(1e15)
	span := func(layer, name string, from, took int64, weight float64, slice int64, step int32) {
		id++
		b.Spans = append(b.Spans, event.Span{ID: id, StartNS: begin + from, DurationNS: took, PID: 7, TID: 7, Weight: weight, SequenceNumber: -1,
			SliceID: slice, SliceStep: step, Call: &event.Call{Layer: layer, Name: name}})
	}
	sample := func(from, until int64, stack int64) {
		for ns := from; ns < until; ns += 5e6 {
			b.Samples = append(b.Samples, event.Sample{TSNS: begin + ns, PID: 7, TID: 7, State: event.OnCPU, WeightNS: 5e6, StackID: &stack})
		}
	}
	for i := range int64(60) {
		slice, step, weight := int64(0), int32(0), 1.0
		if i%10 == 4 || i%10 == 5 {
			slice, step, weight = i/10+1, int32(i%10-3), 5
		}
		if step == 1 {
			b.Slices = append(b.Slices, event.Slice{ID: slice, PID: 7, Group: "op", Phase: "training", BeginNS: begin + at, EndNS: begin + at + 40e6,
				FromNS: begin + at - 80e6, ToNS: begin + at + 120e6, Unit: "steps", Recorded: 2, Steps: 2, Represented: 10})
		}
		span("scope", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 1e6, 1, 0, 0)
		if slice > 0 {
			for k := range int64(4) {
				span("op", "aten::addmm", at+2e6+k*4e6, 4e6, weight, slice, step)
			}
		}
		span("scope", "Optimizer.step#SGD.step", at+18e6, 1e6, 1, 0, 0)
		sample(at+2e6, at+18e6, 5)
		at += 20e6
		if evaluation && i == 29 {
			sample(at, at+260e6, 5)
			sample(at+260e6, at+300e6, 6)
			at += 300e6
		}
	}
	ended := begin + at
	for _, do := range []func() error{func() error { return d.Session(event.Recording{ID: "s", StartedNS: begin, EndedNS: &ended}) },
		func() error { return d.Write(b) }, d.Close} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	db, err := dataset.Open(d.Dir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// TestAnEvaluationThatNoSliceSawIsCounted by samples: 60 × 4 + 65 calls are in the interval; without it nothing is added.
func TestAnEvaluationThatNoSliceSawIsCounted(t *testing.T) {
	const training, evaluation = 240, 65
	r := built(t, evaluated(t, true))
	o := r.Operators[0]
	if o.Name != "aten::addmm" || *o.CallsLo > training+evaluation || o.CallsHi == nil || *o.CallsHi < training+evaluation ||
		math.Abs(o.Calls-training-evaluation) > 10 || *o.CallsLo < training+evaluation/2 {
		t.Errorf("%+v: %g to %g", o, *o.CallsLo, *o.CallsHi)
	}
	if math.Abs(r.UnseenMS-301) > 2 || strings.Join(r.UnseenOperators, " ") != "aten::argmax aten::linear" {
		t.Errorf("%g ms, %v", r.UnseenMS, r.UnseenOperators)
	}
	r = built(t, evaluated(t, false))
	if o := r.Operators[0]; r.UnseenMS != 0 || math.Abs(o.Calls-training) > 1e-6 || *o.CallsHi > training+1 {
		t.Errorf("%g ms, %+v to %g", r.UnseenMS, o, *o.CallsHi)
	}
}

// TestPoissonLimits against the table of Garwood.
func TestPoissonLimits(t *testing.T) {
	for _, c := range [][3]float64{{0, 0, 3.689}, {1, 0.0253, 5.572}, {10, 4.795, 18.39}, {100, 81.36, 121.63}, {1000, 938.97, 1063.95}} {
		if lo, hi := poissonLimits(c[0]); math.Abs(lo-c[1]) > 2e-3*c[1]+1e-4 || math.Abs(hi-c[2]) > 2e-3*c[2] {
			t.Errorf("%g: %g to %g, not %g to %g", c[0], lo, hi, c[1], c[2])
		}
	}
}
