package decode

import (
	"errors"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/generated"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
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
	d.calls.fused.modules = generated.NewModules(func(pid int, path string, limit int64) ([]byte, error) {
		if pid != 10 || path != "module.py" {
			return nil, errors.New("none")
		}
		return []byte(generatedModule), nil
	})
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
