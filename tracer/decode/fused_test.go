package decode

import (
	"errors"
	"maps"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/cpython"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/generated"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/rows"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
)

// lateCallers are known once the ring has been read.
type lateCallers struct {
	known map[uint64]stacks.Caller
	read  bool
}

func (l *lateCallers) CallerOf(raw uint64) (stacks.Caller, bool) {
	caller, ok := l.known[raw]
	return caller, ok && l.read
}

const generatedModule = "cpp_fused_add_gelu_0 = async_compile.cpp_pybinding(['float*'], '''x''')\n" +
	"def call(args):\n" +
	"    cpp_fused_add_gelu_0(buf0)\n"

func TestAFusedKernelHasTheNameOfTheLineThatCallsIt(t *testing.T) {
	d, sink, index := testDecoder(t)
	spec := index("cpp_fused")
	probes := d.calls.probes.All()
	operators := probes[index("op")].Planned
	for i, name := range []string{"aten::add", "aten::gelu"} {
		operator := *operators
		operator.Call = &event.Call{Layer: "op", Name: name}
		d.calls.probes.Put(uint32(len(probes)+i), []plan.Probe{operator}, nil)
	}
	callers := &lateCallers{known: map[uint64]stacks.Caller{
		1 << 4: {File: "module.py", Line: 3}, 1 << 5: {File: "module.py", Line: 2}, 1 << 6: {File: "gone.py", Line: 3}, 1 << 7: {},
	}}
	d.calls.fused.callers, d.calls.fused.read = callers, func() error { callers.read = true; return nil }
	d.calls.fused.modules = generated.NewModules(generated.Files{Read: func(pid int, path string, limit int64) ([]byte, error) {
		if pid != 10 || path != "module.py" {
			return nil, errors.New("none")
		}
		return []byte(generatedModule), nil
	}})
	for i, line := range []uint64{1<<4 | 1, 1<<5 | 1, 1<<6 | 1, 1<<7 | 1, 1<<8 | 1, 0} {
		s := span(spec, uint64(i+1))
		s.Line = line
		d.calls.record(encode(s, 0))
	}
	if err := d.Flush(); err != nil {
		t.Fatal(err)
	}
	for i, s := range sink.spans {
		name, fused := "cpp_fused", ""
		if i == 0 {
			name, fused = "cpp_fused_add_gelu_0", `["aten::add","aten::gelu"]`
		}
		got := ""
		if s.Detail != nil {
			got = s.Detail.FusedOperators
		}
		if s.Call.Name != name || s.Call.Category != "fused" || s.Call.Layer != "op" || got != fused {
			t.Errorf("call %d is %+v of %s", i, *s.Call, got)
		}
	}
	if total := d.Rows.Sums.Totals.Operators["cpp_fused_add_gelu_0"]; total == nil || total.Count != 1 {
		t.Errorf("the sums have %+v", total)
	}
}

// To learn who made a call, the ring of samples may be read, whose rows of long reads go
// into the batch as well: the call keeps its name, its operators and its stack.
func TestACallIsNamedWhileTheBatchGrows(t *testing.T) {
	d, sink, index := testDecoder(t)
	callers := &lateCallers{known: map[uint64]stacks.Caller{1 << 4: {File: "module.py", Line: 3}}}
	const reads = 1000
	d.calls.fused.callers, d.calls.fused.read = callers, func() error {
		callers.read = true
		for range reads {
			d.Rows.Batch.Span(event.Span{Call: &event.Call{Layer: "io", Name: "read"}})
		}
		return nil
	}
	d.calls.fused.modules = generated.NewModules(generated.Files{Read: func(int, string, int64) ([]byte,
		error) {
		return []byte(generatedModule), nil
	}})
	s := span(index("cpp_fused"), 1)
	s.Line = 1<<4 | 1
	d.calls.record(encode(s, 0))
	if err := d.Flush(); err != nil {
		t.Fatal(err)
	}
	named := 0
	for i := range sink.spans {
		if sink.spans[i].Call.Name == "cpp_fused_add_gelu_0" {
			named++
		}
	}
	if named != 1 || len(sink.spans) != reads+1 {
		t.Errorf("%d of %d spans have the name", named, len(sink.spans))
	}
}

// A job that ends may remove what it generated before the first call of it is decoded.
func TestAGeneratedModuleIsReadWhenTheStackComes(t *testing.T) {
	d, sink, index := testDecoder(t)
	spec := index("cpp_fused")
	reads, there := map[string]int{}, true
	fused := &d.calls.fused
	fused.modules = generated.NewModules(generated.Files{Read: func(_ int, path string, _ int64) ([]byte, error) {
		if reads[path]++; !there {
			return nil, errors.New("removed")
		}
		return []byte(generatedModule), nil
	}})
	fused.callers = &lateCallers{read: true, known: map[uint64]stacks.Caller{
		1 << 4: {File: "module.py", Line: 3}, 1 << 5: {File: "other.py", Line: 3},
	}}
	for range 2 {
		d.samples.called(10, &cpython.Code{Function: "Runner.call", File: "module.py"})
	}
	d.samples.called(10, &cpython.Code{Function: "forward", File: "model.py"})
	there = false
	for i, line := range []uint64{1<<4 | 1, 1<<5 | 1} {
		s := span(spec, uint64(i+1))
		s.Line = line
		d.calls.record(encode(s, 0))
	}
	if err := d.Flush(); err != nil {
		t.Fatal(err)
	}
	if sink.spans[0].Call.Name != "cpp_fused_add_gelu_0" || sink.spans[1].Call.Name != "cpp_fused" {
		t.Errorf("calls %+v and %+v", *sink.spans[0].Call, *sink.spans[1].Call)
	}
	if want := map[string]int{"module.py": 1, "other.py": 1}; !maps.Equal(reads, want) {
		t.Errorf("files were read %v times, want %v", reads, want)
	}
	unnamed := int64(0)
	for _, w := range d.Losses() {
		if w.Source == "kernel_unnamed" {
			unnamed = w.Count
		}
	}
	if unnamed != 1 {
		t.Errorf("%d calls without a name are told of, want 1", unnamed)
	}
}

// TestALaunchOfTritonIsAnOperator: of operators that are probed later, too.
func TestALaunchOfTritonIsAnOperator(t *testing.T) {
	d, _, index := testDecoder(t)
	probes := d.calls.probes.All()
	launch := func(category, name string) (launch, operator event.Span, ok bool) {
		launch = event.Span{
			ID: 7, ParentID: 3, StartNS: 100, DurationNS: 50, PythonStackID: 9,
			Call: &event.Call{Layer: "driver", Category: category, Runtime: "cuda", Name: name},
		}
		operator, ok = d.calls.fused.launched(&launch)
		return launch, operator, ok
	}
	const kernel = "triton_poi_fused_add_gelu_0"
	clear(d.calls.fused.operators)
	d.calls.fused.looked = len(probes) // as at a level that probes no operator
	if alone, _, ok := launch("launch", kernel); ok || alone.ParentID != 3 {
		t.Errorf("without rows of operators its parent is %d", alone.ParentID)
	}
	for i, name := range []string{"aten::add", "aten::gelu"} {
		operator := *probes[index("op")].Planned
		operator.Call = &event.Call{Layer: "op", Name: name}
		d.calls.probes.Put(uint32(len(probes)+i), []plan.Probe{operator}, nil)
	}
	for range 2 {
		inner, outer, ok := launch("launch", kernel)
		if !ok || !outer.IsAround() || outer.ParentID != 3 || inner.ParentID != outer.ID || inner.ID != 7 || inner.IsAround() {
			t.Fatalf("span %d in %d in span %d in %d", inner.ID, inner.ParentID, outer.ID, outer.ParentID)
		}
		if want := (event.Call{Layer: "op", Category: "fused", Name: kernel}); *outer.Call != want {
			t.Errorf("the operator is %+v, want %+v", *outer.Call, want)
		}
		if outer.StartNS != 100 || outer.DurationNS != 50 || outer.PythonStackID != 9 {
			t.Errorf("the operator is %+v, its launch %+v", outer, inner)
		}
		for _, s := range []event.Span{inner, outer} {
			if s.Detail == nil || s.Detail.FusedOperators != `["aten::add","aten::gelu"]` {
				t.Errorf("%+v replaces %+v", *s.Call, s.Detail)
			}
		}
	}
	if inner, outer, ok := launch("launch", "triton_per_fused_mine_1"); !ok || inner.Detail != nil || outer.Detail != nil {
		t.Errorf("a kernel whose name does not tell replaces %+v", outer.Detail)
	}
	for category, name := range map[string]string{"module": kernel, "launch": "scale(float*, int)"} {
		if s, _, ok := launch(category, name); ok || s.ParentID != 3 || s.Detail != nil {
			t.Errorf("%s of %s is an operator", category, name)
		}
	}
}

// TestAnOperatorAroundALaunchIsNoSecondCall: it has a row, in a slice and outside of one, with
// the launch's weight, and what adds calls up has the launch alone.
func TestAnOperatorAroundALaunchIsNoSecondCall(t *testing.T) {
	const kernel = "triton_poi_fused_add_0"
	for _, sliced := range []bool{false, true} {
		d, sink, index := testDecoder(t)
		launch := *d.calls.probes.All()[index("cuLaunchKernel")].Planned
		launch.Call = &event.Call{Layer: "driver", Category: "launch", Runtime: "cuda", Name: kernel}
		add := *d.calls.probes.All()[index("op")].Planned
		add.Call = &event.Call{Layer: "op", Name: "aten::add"}
		spec := uint32(len(d.calls.probes.All()))
		d.calls.probes.Put(spec, []plan.Probe{launch, add}, nil)
		weight := 1.0
		if d.Rows.Slices.Hold(sliced); sliced {
			weight = 12.5
		}
		d.calls.record(encode(span(spec, 42), 0, make([]uint64, len(launch.Function.Values))...))
		if sliced {
			if len(sink.spans) > 0 {
				t.Fatalf("before the weight is known: %+v", sink.spans)
			}
			d.Rows.Slices.Weigh(1, rows.WholeEpoch, share(weight))
		}
		if err := d.Finish(); err != nil { // a launch waits for its time on the device
			t.Fatal(err)
		}
		if len(sink.spans) != 2 {
			t.Fatalf("sliced %v: %d rows", sliced, len(sink.spans))
		}
		inner, outer := sink.spans[0], sink.spans[1]
		if inner.IsAround() {
			inner, outer = outer, inner
		}
		if inner.ID != 42 || inner.ParentID != outer.ID || outer.ParentID != 7 || outer.Call.Layer != "op" || outer.Call.Category != "fused" {
			t.Errorf("sliced %v: span %d (%+v) in %d, in span %d (%+v) in %d", sliced, inner.ID, *inner.Call, inner.ParentID, outer.ID, *outer.Call,
				outer.ParentID)
		}
		if inner.Weight != weight || outer.Weight != weight || outer.SliceID != inner.SliceID {
			t.Errorf("sliced %v: weights %v and %v", sliced, inner.Weight, outer.Weight)
		}
		if total := d.Rows.Sums.Totals.Operators[kernel]; total == nil || total.Count != weight || total.Layer != "driver" {
			t.Errorf("sliced %v: the sums have %+v", sliced, total)
		}
	}
}
