package decode

import (
	"github.com/ebpfprof/ebpfprof/tracer/cache"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
	"github.com/ebpfprof/ebpfprof/tracer/tensor"
)

// shapes are those of operators' arguments. What the kernel read of them comes in a record
// of its own before the first span that has them; later ones name it.
type shapes struct {
	reader    *tensor.Reader
	told      cache.Recent[toldKey, *told]
	shapeless uint64 // calls whose tensors made no sense, or not yet
	forgotten uint64 // calls that named shapes which are not there any more
}

// toldKey is a thread's number of shapes.
type toldKey struct{ tid, number uint32 }

// told is what the kernel told once: nil shapes made no sense.
type told struct {
	of     *tensor.Operator
	shapes *tensor.Shapes
	trust  *tensor.Trust
}

// believed are the shapes, if their layout has shown that it is the right one.
func (t *told) believed() *tensor.Shapes {
	if !t.trust.Holds() {
		return nil
	}
	return t.shapes
}

// mostTold is how many shapes are kept, those that were named last: all that 512 threads
// can name (TOLD_SHAPES, bpf/wire.h).
const mostTold = 1 << 17

func newShapes() shapes {
	return shapes{reader: tensor.NewReader(), told: cache.NewRecent[toldKey, *told](mostTold)}
}

// tensors takes shapes that calls will name.
func (c *calls) tensors(raw []byte) {
	tid, number, spec, ok := tensor.Head(raw)
	probe := c.probes.Find(spec)
	if !ok || probe == nil || probe.Planned.Shapes == nil {
		c.damaged++
		return
	}
	t := &told{of: probe.Planned.Shapes, trust: probe.Trust}
	t.shapes, _ = c.shapes.reader.Read(raw, probe.Planned.Shapes, probe.Trust)
	c.shapes.told.Put(toldKey{tid, number}, t)
}

// of finds what a call named; nil where there is nothing. The place of a probe may be another
// function's by now, which the kernel does not know.
func (s *shapes) of(r *callRecord, p *probetable.Probe) *tensor.Shapes {
	if r.Shapes == 0 {
		return nil
	}
	t, ok := s.told.Get(toldKey{r.Tid, r.Shapes})
	if !ok || !t.of.Same(p.Planned.Shapes) {
		s.forgotten++
		return nil
	}
	shapes := t.believed()
	if shapes == nil {
		s.shapeless++
	}
	return shapes
}

// give gives a span its shapes, FLOPs only where no call around it has them.
func (s *shapes) give(to *event.Span, r *callRecord, p *probetable.Probe) {
	shapes := s.of(r, p)
	if shapes == nil {
		return
	}
	detail := shapes.Detail
	if shapes.Counted() && r.ShapesAround != 0 {
		if t, ok := s.told.Get(toldKey{r.Tid, r.ShapesAround}); ok {
			if around := t.believed(); around != nil && around.Counted() {
				detail = shapes.Within
			}
		}
	}
	if share := shapes.Share; share != nil {
		d := to.MakeDetail()
		d.ElementCount, d.Dtype, d.Bytes = &share.Elements, share.Dtype, &share.Bytes
	}
	if to.Detail == nil && r.stack == 0 {
		to.Detail = detail // shared: nothing changes it from here on
		return
	}
	to.MakeDetail().Shape = detail.Shape
}
