package decode

import (
	"github.com/ebpfprof/ebpfprof/tracer/cache"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/tensor"
)

// shapes are those of the arguments of operators that are still open: what the kernel
// read of them comes in a record of its own before the span's.
type shapes struct {
	reader    *tensor.Reader
	open      cache.Pending[uint64, *tensor.Shapes] // by span
	shapeless uint64                                // calls whose tensors made no sense, or not yet
}

func newShapes() shapes { return shapes{reader: tensor.NewReader()} }

// tensors takes the shapes of a call that has begun.
func (c *calls) tensors(raw []byte) {
	span, spec, ok := tensor.SpanID(raw)
	probe := c.probes.Find(spec)
	if !ok || probe == nil || probe.Planned.Shapes == nil {
		c.damaged++
		return
	}
	if shapes, ok := c.shapes.reader.Read(raw, probe.Planned.Shapes, probe.Trust); ok {
		c.shapes.open.Put(span, shapes)
	} else {
		c.shapes.shapeless++
	}
}

// give gives a span its shapes, FLOPs only where no call around it has them.
func (t *shapes) give(s *event.Span, r *callRecord) {
	shapes, ok := t.open.Take(r.SpanId)
	if !ok {
		return
	}
	detail := shapes.Detail
	if shapes.Counted() {
		if around, ok := t.open.Get(r.ParentId); ok && around.Counted() {
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
