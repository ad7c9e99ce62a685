package tracer

import (
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/tensor"
)

// The shapes of what operators are called with: where the arguments are is planned with
// the sites, where a tensor has its sizes is known with the process.

// takeShapes has the kernel read the shapes of a file's operators, if it is known where
// the process's version of PyTorch has them.
func (s *Session) takeShapes(plan *plan.Plan, t *tracedProcess, library *process.Library) {
	if s.options.NoShapes || t == nil {
		return
	}
	shaped := 0
	for i := range plan.Probes {
		if plan.Probes[i].Shapes != nil {
			shaped++
		}
	}
	if shaped == 0 {
		return
	}
	version := ""
	for _, f := range t.process.Frameworks(append([]*process.Library{library}, t.libraries...)) {
		if f.Name == "pytorch" {
			version = f.Version
		}
	}
	layout, ok := tensor.LayoutOf(version)
	if !ok {
		s.warn(Warning{
			TSNS: time.Now().UnixNano(), Kind: "shapes", Source: library.Path, Count: int64(shaped),
			Detail: fmt.Sprintf("where PyTorch %q keeps the sizes of its tensors is not in the tracer's table: no shapes", version),
		})
		return
	}
	for i := range plan.Probes {
		p := &plan.Probes[i]
		if p.Shapes != nil {
			p.TakeShapes(&layout)
		}
	}
}

// distrusted says of which files the tensors are not where the table has them.
func (s *Session) distrusted() (warnings []Warning) {
	for _, f := range s.files {
		if t := &f.trust; t.Refused() {
			warnings = append(warnings, Warning{
				Kind: "shapes", Source: f.plan.Path, Count: int64(t.Disagreed),
				Detail: fmt.Sprintf("tensors whose sizes, strides, elements and storage do not agree, beside %d where they do: this build of PyTorch keeps them elsewhere than its version does, and no shapes of it were recorded from then on", t.Agreed),
			})
		}
	}
	return warnings
}
