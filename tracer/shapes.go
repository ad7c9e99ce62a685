package tracer

import (
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/probes"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/tensor"
)

// The shapes of what operators are called with: where the arguments are is planned with
// the sites, where a tensor has its sizes is known with the process.

// takeShapes has the kernel read the shapes of a file's operators, if it is known where
// the process's version of PyTorch has them.
func (s *Session) takeShapes(plan *plan.Plan, found *probes.Found) {
	if s.options.NoShapes {
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
	for _, f := range found.Process.Frameworks(append([]*process.Library{found.Library}, found.Libraries...)) {
		if f.Name == "pytorch" {
			version = f.Version
		}
	}
	layout, ok := tensor.LayoutOf(version)
	if !ok {
		s.warn(Warning{
			TSNS: time.Now().UnixNano(), Kind: "shapes", Source: found.Library.Path, Count: int64(shaped),
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
