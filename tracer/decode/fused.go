package decode

import (
	"encoding/json"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/generated"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/rows"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
)

// fused names the calls of kernels that a compiler generated. All of these functions have
// one name; what the generated Python module calls each by is on the line that calls it.
type fused struct {
	names   *rows.CallNames
	callers interface {
		CallerOf(raw uint64) (stacks.Caller, bool)
	}
	read    func() error // what waits in the ring by which stacks come
	probes  *probetable.Table
	modules *generated.Modules
	// operators are PyTorch's, as far as they are planned: those of so many entries of the
	// table of probes.
	operators map[string]bool
	looked    int
}

func newFused(r *rows.Rows, probes *probetable.Table, s *samples) fused {
	return fused{
		names: &r.Names, callers: r.Stacks, read: s.read, probes: probes, modules: generated.NewModules(process.ReadFile), operators: map[string]bool{},
	}
}

// name names a call by the line that it comes from. The kernel's name of that line's stack
// is in the span still; the stack itself was sent before the call was.
func (f *fused) name(s *event.Span, spec uint32) {
	raw := uint64(s.PythonStackID) &^ rows.LineSourceBits
	if raw == 0 {
		return
	}
	caller, known := f.callers.CallerOf(raw)
	if !known {
		if f.read() != nil {
			return // it is told at the next flush
		}
		caller, _ = f.callers.CallerOf(raw)
	}
	if caller.File == "" {
		return
	}
	kernel, ok := f.modules.Kernel(uint32(s.PID), caller.File, int(caller.Line), f.isOperator)
	if !ok {
		return
	}
	s.Call = f.names.Name(spec, s.Call, kernel.Name)
	if len(kernel.Operators) > 0 {
		list, _ := json.Marshal(kernel.Operators)
		s.MakeDetail().FusedOperators = string(list)
	}
}

// isOperator reports whether PyTorch has an operator aten::NAME.
func (f *fused) isOperator(name string) bool {
	if planned := f.probes.All(); len(planned) != f.looked {
		f.looked = len(planned)
		for _, p := range planned {
			if p != nil && p.Planned.Function.Name == catalog.FromOperator {
				if name, ok := strings.CutPrefix(p.Planned.Call.Name, "aten::"); ok {
					f.operators[name] = true
				}
			}
		}
	}
	return f.operators[name]
}
