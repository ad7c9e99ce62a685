package decode

import (
	"encoding/json"
	"strings"

	"github.com/ebpfprof/ebpfprof/symbolize/cpython"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/generated"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
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
	planned   bool // whether a kernel is
	looked    int
	unnamed   uint64                  // calls
	triton    map[string]tritonKernel // by name
}

// tritonKernel is a kernel that Inductor made Triton generate.
type tritonKernel struct {
	call      *event.Call // of layer op, as which its launches are called
	operators string      // that it replaces, as JSON; "": its name does not tell
}

// mostTriton are the names of kernels that are kept: a model has some hundred.
const mostTriton = 1 << 12

// launched makes the operator around the launch of a kernel that Inductor made Triton
// generate: in PyTorch there is no call for it. It has the launch's own time, and the
// operators that it replaces as far as the kernel's name tells. False where the span is no
// such launch, or where operators have no rows.
func (f *fused) launched(s *event.Span) (operator event.Span, ok bool) {
	if s.Call.Category != "launch" || !strings.HasPrefix(s.Call.Name, "triton_") {
		return event.Span{}, false
	}
	if f.look(); len(f.operators) == 0 {
		return event.Span{}, false
	}
	kernel := f.tritonKernel(s.Call.Name)
	operator = *s
	operator.ID, operator.Call, operator.Detail = event.AroundID(s.ID), kernel.call, nil
	s.ParentID = operator.ID
	if kernel.operators != "" {
		operator.MakeDetail().FusedOperators = kernel.operators
		s.MakeDetail().FusedOperators = kernel.operators
	}
	return operator, true
}

func (f *fused) tritonKernel(name string) tritonKernel {
	if kernel, known := f.triton[name]; known {
		return kernel
	}
	kernel := tritonKernel{call: &event.Call{Layer: "op", Category: "fused", Name: name}}
	if operators := generated.Operators(name, f.isOperator); operators != nil {
		list, _ := json.Marshal(operators)
		kernel.operators = string(list)
	}
	if len(f.triton) >= mostTriton {
		clear(f.triton)
	}
	f.triton[name] = kernel
	return kernel
}

func newFused(r *rows.Rows, probes *probetable.Table, s *samples, modules *generated.Modules) fused {
	return fused{
		names: &r.Names, callers: r.Stacks, read: s.read, probes: probes, modules: modules, operators: map[string]bool{},
		triton: map[string]tritonKernel{},
	}
}

// moduleFunction is what Inductor calls the function whose lines call kernels: a function
// of the module, or a method since PyTorch 2.9.
const moduleFunction = "call"

// prepare reads the module that a call's stack comes from as soon as the stack is taken out
// of the ring: a job may remove its generated code where it ends, and to name the stack's
// native frames may take seconds.
func (f *fused) prepare(pid uint32, caller *cpython.Code) {
	function := caller.Function[strings.LastIndexByte(caller.Function, '.')+1:]
	if function != moduleFunction {
		return
	}
	if f.look(); f.planned {
		f.modules.Prepare(pid, caller.File)
	}
}

// name names a call by the line that it comes from. The kernel's name of that line's stack
// is in the span still; the stack itself was sent before the call was.
func (f *fused) name(s *event.Span, probe uint32) {
	kernel, ok := f.kernel(s)
	if !ok {
		f.unnamed++
		return
	}
	s.Call = f.names.Name(probe, s.Call, kernel.Name)
	if len(kernel.Operators) > 0 {
		list, _ := json.Marshal(kernel.Operators)
		s.MakeDetail().FusedOperators = string(list)
	}
}

func (f *fused) kernel(s *event.Span) (generated.Kernel, bool) {
	raw := uint64(s.PythonStackID) &^ rows.LineSourceBits
	if raw == 0 {
		return generated.Kernel{}, false
	}
	caller, known := f.callers.CallerOf(raw)
	if !known {
		if f.read() != nil {
			return generated.Kernel{}, false // it is decoded at the next flush
		}
		caller, _ = f.callers.CallerOf(raw)
	}
	if caller.File == "" {
		return generated.Kernel{}, false
	}
	return f.modules.Kernel(uint32(s.PID), caller.File, int(caller.Line), f.isOperator)
}

// isOperator reports whether PyTorch has an operator aten::NAME.
func (f *fused) isOperator(name string) bool {
	f.look()
	return f.operators[name]
}

// look looks at what was planned since it last did.
func (f *fused) look() {
	planned := f.probes.All()
	if len(planned) == f.looked {
		return
	}
	f.looked = len(planned)
	clear(f.triton) // there are more operators
	for _, p := range planned {
		if p == nil {
			continue
		}
		switch p.Planned.Function.Name {
		case spec.FromCaller:
			f.planned = true
		case spec.FromOperator:
			if name, ok := strings.CutPrefix(p.Planned.Call.Name, "aten::"); ok {
				f.operators[name] = true
			}
		}
	}
}
