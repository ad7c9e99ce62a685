package decode

import (
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/accel"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
	"github.com/ebpfprof/ebpfprof/tracer/rows"
)

// span makes the row of a call that has ended.
func (c *calls) span(r *callRecord, probe *probetable.Probe) {
	if probe.Planned.Function.TextPrefix != "" && !c.trimText(r.SpanId, probe.Planned.Function.TextPrefix) {
		return
	}
	held := c.rows.Slices.Holds(probe, r.Epoch)
	s := &c.decoded
	*s = event.Span{
		ID: int64(r.SpanId), ParentID: int64(r.ParentId), StartNS: int64(r.StartNs) + c.offsetNS,
		DurationNS: int64(r.EndNs - r.StartNs), PID: int32(r.Tgid), TID: int32(r.Tid),
		Call: probe.Planned.Call, End: event.EndMethod(r.End), Status: event.Status(r.Status),
		Weight: 1, PythonStackID: int64(r.Line), PythonStackSource: rows.UnresolvedLine,
	}
	s.SequenceNumber, r.thread = sequenceOf(r.Sequence)
	if s.End == event.EndUnfinished {
		s.DurationNS = -1
	}
	var call *accel.Call
	var around event.Span
	var isAround bool
	r.stack = r.takeStack(probe)
	f := probe.Planned.Function
	if f.Action == spec.Instant {
		s.End, s.DurationNS = event.EndInstant, 0
	}
	if f.Asked != nil {
		c.arguments(s, f.Asked, f, r, probe.Planned.ResultSeen)
	} else if len(r.args) > 0 || f.Text != spec.NoText || f.StatusOK {
		call = c.detail(s, f, r)
	}
	if call != nil {
		around, isAround = c.fused.launched(s)
	}
	if probe.Planned.Shapes != nil {
		c.shapes.give(s, r, probe)
	}
	if f.Name == spec.FromCaller {
		c.fused.name(s, r.Spec)
	}
	if r.stack != 0 {
		c.rows.Batch.SetStack(s, r.stack)
	}
	if s.SequenceNumber >= 0 {
		c.forwards.flow(s, r)
	}
	if s.Call.Layer == "collective" {
		c.collectives.call(s, f, r)
	}
	awaited := false // it comes back with its time on the device
	if !held {       // else its weight comes first
		c.rows.Sums.AddOf(probe, s)
		c.clocks.saw(s, f)
		awaited = call != nil && call.Await()
	}
	if awaited {
		c.rows.Sums.Totals.Spans++
	} else {
		c.add(probe, r.Epoch, held, s)
	}
	if isAround {
		c.add(probe, r.Epoch, held, &around)
	}
}

// add adds a span to the batch, or to those of its slice.
func (c *calls) add(probe *probetable.Probe, epoch uint32, held bool, s *event.Span) {
	c.rows.Sums.Totals.Spans++
	if held {
		c.rows.Slices.HoldSpan(probe, epoch, s)
	} else {
		c.rows.Batch.AddSpan(s)
	}
}

// trimText takes the prefix off the text of a call, and reports whether the call has a row:
// not where its text begins otherwise, nor where it is a counter of C++ (compileStages), nor
// one of the collectives that torch.distributed times.
func (c *calls) trimText(id uint64, prefix string) bool {
	text, _ := c.texts.Take(id)
	name, ok := strings.CutPrefix(text, prefix)
	if !ok || strings.Contains(name, "__") || strings.HasPrefix(name, "c10d.") {
		return false
	}
	c.texts.Put(id, name)
	return true
}

// unfinished makes a row of a call whose end was not seen.
func (c *calls) unfinished(open kernel.OpenCall) {
	probe := c.probes.Find(open.Spec)
	if probe == nil {
		c.damaged++
		return
	}
	f := probe.Planned.Function
	if f.Action == spec.Timed {
		return // it has no row of its own, and what it freed is not told here
	}
	if f.TextPrefix != "" && !c.trimText(open.SpanID, f.TextPrefix) {
		return
	}
	s := &c.decoded
	*s = event.Span{
		ID: int64(open.SpanID), ParentID: int64(open.ParentID), StartNS: int64(open.StartNS) + c.offsetNS, DurationNS: -1,
		PID: int32(open.Tgid), TID: int32(open.TID), Call: probe.Planned.Call, End: event.EndUnfinished, Weight: 1, SequenceNumber: -1,
		PythonStackID: int64(open.Line), PythonStackSource: rows.UnresolvedLine,
	}
	if name, ok := c.texts.Take(open.SpanID); ok && f.Name == spec.FromText {
		s.Call = c.rows.Names.Name(open.Spec, s.Call, name)
	}
	if f.Name == spec.FromCaller {
		c.fused.name(s, open.Spec)
	}
	if f.Effect == spec.RunsWork {
		c.collectives.unfinished(s)
	}
	held := c.rows.Slices.Holds(probe, open.Epoch)
	if !held {
		c.rows.Sums.Add(s)
	}
	c.add(probe, open.Epoch, held, s)
}
