package report

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/explain"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/calltree"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// nested is a sweep of operators that stand in each other: each has the path around it, 0 for none, and its exclusive ms.
type nested struct {
	name   string
	layer  string
	around int32
	selfMS float64
}

func sweptOf(paths []nested) (*sweep, []Operator) {
	s := &sweep{slices: calltree.NewSlices(nil), byName: map[string]*hosted{}, paths: make([]sweptPath, 1), groups: map[string]*calltree.Sum{}}
	for _, p := range paths {
		h := s.byName[p.name]
		if h == nil {
			h = &hosted{Operator: Operator{Name: p.name, Layer: p.layer, Estimated: true}, index: len(s.operators)}
			s.byName[p.name], s.operators = h, append(s.operators, h)
		}
		s.paths = append(s.paths, sweptPath{around: p.around, of: h})
		o := &opened{of: h, path: int32(len(s.paths) - 1), weight: 10}
		s.noteOwn(o, p.selfMS*1e6/10)
	}
	var operators []Operator
	for _, h := range s.operators {
		operators = append(operators, h.Operator)
	}
	return s, operators
}

// TestCalibratedTablesAgree: exclusive times sum to at most the clock's, and no operator exceeds the one that it stands in,
// however far the samples are from the rows.
func TestCalibratedTablesAgree(t *testing.T) {
	paths := []nested{{"AddmmBackward0", "autograd", 0, 100}, {"aten::mm", "op", 1, 900}, {"aten::linear", "op", 0, 50},
		{"aten::addmm", "op", 3, 400},
		{"aten::copy_", "op", 4, 5}, {"aten::mul", "op", 0, 70}, {"aten::t", "op", 1, 30}}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		s, operators := sweptOf(paths)
		sampled, total := map[string]float64{"": 5e8 * rng.Float64()}, 0.0
		for _, p := range paths {
			key := p.name
			if p.layer == "autograd" {
				key = p.layer
			}
			sampled[key] = p.selfMS * 1e6 * 2 * rng.Float64()
		}
		for _, ns := range sampled {
			total += ns / 1e6
		}
		own, _ := s.calibrate(sampled, 1e7)
		s.apply(operators, own)
		by, sum := map[string]Operator{}, 0.0
		for _, o := range operators {
			by[o.Name] = o
			sum += o.SelfMS
			if o.SelfMS > o.TotalMS*(1+1e-9) || *o.TotalLoMS > o.TotalMS || *o.TotalHiMS < o.TotalMS {
				t.Fatalf("%+v", o)
			}
		}
		if sum > total*(1+1e-9) {
			t.Fatalf("operators take %g ms of %g", sum, total)
		}
		for child, parent := range map[string]string{"aten::mm": "AddmmBackward0", "aten::addmm": "aten::linear", "aten::copy_": "aten::addmm",
			"aten::t": "AddmmBackward0"} {
			if by[child].TotalMS > by[parent].TotalMS*(1+1e-9) {
				t.Fatalf("%s takes %g ms, %s in it %g", parent, by[parent].TotalMS, child, by[child].TotalMS)
			}
		}
	}
}

// calibrated is a recording of 20 slices of 3 steps, each of one product of 4 ms of which an equal part was recorded in
// each slice, and what samples say of the product.
func calibrated(t *testing.T, agree bool) *builder {
	t.Helper()
	d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := &event.Batch{}
	ended, op, stack, other := int64(1e15+20e9), "aten::mm", int64(5), int64(6)
	for i := range int64(20) {
		begin := 1e15 + i*1e9
		b.Slices = append(b.Slices, event.Slice{ID: i + 1, PID: 7, Group: "op", Phase: "training", BeginNS: begin, EndNS: begin + 30e6,
			FromNS: begin, ToNS: begin + 1e9, Unit: "steps", Recorded: 3, Steps: 3, Represented: 100})
		for k := range int64(3) {
			id := i*3 + k + 1
			at := begin + k*10e6
			b.Spans = append(b.Spans, event.Span{ID: id, StartNS: at, DurationNS: 4e6 + (i%5)*1e5, PID: 7, TID: 7, Weight: 100.0 / 3,
				SequenceNumber: -1, SliceID: i + 1, SliceStep: int32(k + 1), Call: &event.Call{Layer: "op", Name: op}})
			s := event.Sample{TSNS: at + 1e6, PID: 7, TID: 7, State: event.OnCPU, WeightNS: 10e6, StackID: &stack, SpanID: id}
			if !agree && k > 0 {
				s.StackID = &other
			}
			b.Samples = append(b.Samples, s)
		}
	}
	b.Stacks = []event.Stack{{ID: 5, Status: event.StackComplete, Frames: []event.Frame{{Kind: "op", Function: op, Offset: -1}}},
		{ID: 6, Status: event.StackComplete, Frames: []event.Frame{{Kind: "op", Function: "aten::add", Offset: -1}}}}
	for _, do := range []func() error{func() error { return d.Session(event.Recording{ID: "s", StartedNS: 1e15, EndedNS: &ended}) },
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
	made := &builder{ctx: t.Context(), db: db, report: &Report{}}
	for _, part := range []func() error{made.lint, made.chooseStep, made.operators} {
		if err := part(); err != nil {
			t.Fatal(err)
		}
	}
	made.report.Shares = &explain.Shares{Sampled: map[string]float64{op: 8.2e9, "": 11e9}, PeriodNS: 10e6}
	return made
}

// TestSamplesCalibrateWhatSlicesSaw between the two estimates, and only if the stacks in slices show the open rows.
func TestSamplesCalibrateWhatSlicesSaw(t *testing.T) {
	b := calibrated(t, true)
	before := b.report.Operators[0].SelfMS
	applied, err := b.calibrateOperators()
	o := b.report.Operators[0]
	if err != nil || !applied || o.SelfMS > before || o.SelfMS < 8200 || math.Abs(o.TotalMS-o.SelfMS) > 1e-6 || math.Abs(o.Calls-2000) > 1e-6 {
		t.Errorf("%v %v: %g ms before, %+v", applied, err, before, o)
	}
	if c := b.report.Calibration; c == nil || c.Samples != 60 || c.Agree != 60 || c.Disagree != 0 {
		t.Errorf("%+v", c)
	}
	b = calibrated(t, false)
	if applied, err := b.calibrateOperators(); err != nil || applied || b.report.Operators[0].SelfMS != before ||
		b.report.Calibration.Agree != 20 {
		t.Errorf("%v %v: %+v", applied, err, b.report.Calibration)
	}
}
