package tracer

import (
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/tensor"
)

// The shapes of what operators are called with: where the arguments are is planned with
// the sites, where a tensor has its sizes is known with the process, and what the
// kernel read comes in a record of its own before the span's.

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

// tensors takes the shapes of a call that has begun.
func (d *decoder) tensors(raw []byte) {
	span, spec, ok := tensor.SpanID(raw)
	probe := d.probes.Find(spec)
	if !ok || probe == nil || probe.Planned.Shapes == nil {
		d.damaged++
		return
	}
	if shapes, ok := d.shapes.Read(raw, probe.Planned.Shapes, probe.Trust); ok {
		d.shapesOf.Put(span, shapes)
	} else {
		d.shapeless++
	}
}

// shape gives a span its shapes, FLOPs only where no call around it has them.
func (d *decoder) shape(s *Span, r *callRecord) {
	shapes, ok := d.shapesOf.Take(r.SpanId)
	if !ok {
		return
	}
	detail := shapes.Detail
	if shapes.Counted() {
		if around, ok := d.shapesOf.Get(r.ParentId); ok && around.Counted() {
			detail = shapes.Within
		}
	}
	if share := shapes.Share; share != nil {
		d := s.MakeDetail()
		d.ElementCount, d.Dtype, d.Bytes = &share.Elements, share.Dtype, &share.Bytes
	}
	if s.Detail == nil && r.stack == 0 {
		s.Detail = detail // shared: nothing changes it from here on
		return
	}
	s.MakeDetail().Shape = detail.Shape
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
