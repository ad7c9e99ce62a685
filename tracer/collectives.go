package tracer

import (
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/accel"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/waits"
)

// Collectives of torch.distributed (package waits): the decoder tells of their calls,
// the manager looks now and then which of them threads are still in.

// waitRows are the edges of package waits, in the decoder's batch.
type waitRows struct{ d *decoder }

func (r waitRows) Flow(f event.Flow) { decodedRows(r).Flow(f) }

// collectiveCall is what a record says of a collective.
func collectiveCall(a *accel.Arguments, epoch uint32) waits.Call {
	c := waits.Call{Number: -1, Epoch: epoch, Group: a.Value(catalog.FieldCommunicator), Work: a.Value(catalog.FieldWork)}
	if a.Has(catalog.FieldNumber) {
		c.Number = int64(a.Value(catalog.FieldNumber))
	}
	return c
}

// noCollective is a call of which only the span is known.
var noCollective = waits.Call{Number: -1}

// isIssue reports whether a call asks a group of ranks for a collective.
func isIssue(f *catalog.Function) bool { return f.Layer == "collective" && f.Category == "issue" }

// collective follows a call of torch.distributed that has ended.
func (d *decoder) collective(s *Span, f *catalog.Function, r *callRecord) {
	switch {
	case f.Effect == catalog.RunsWork, f.Effect == catalog.AwaitsWork, isIssue(f):
	default:
		return
	}
	var a accel.Arguments
	d.called = r.call()
	a.Read(f, &d.called)
	switch c := collectiveCall(&a, r.Epoch); f.Effect {
	case catalog.RunsWork:
		d.waits.Run(s, c)
	case catalog.AwaitsWork:
		d.waits.Wait(s, c)
	default:
		if c.Group != 0 {
			d.waits.Issue(s, c)
		}
	}
}

// collectiveEvent follows what happens within one.
func (d *decoder) collectiveEvent(f *catalog.Function, r *callRecord, a *accel.Arguments) {
	c, now := collectiveCall(a, r.Epoch), int64(r.StartNs)+d.offsetNS
	switch f.Effect {
	case catalog.QueuesWork:
		d.waits.Queue(int32(r.Tgid), int32(r.Tid), int64(r.ParentId), now, f.Runtime, c)
	case catalog.FinishesWork:
		d.waits.Finish(int32(r.Tgid), int64(r.ParentId), now, c)
	}
}

// openLook says when the kernel's table of open calls is read.
type openLook struct {
	wanted bool // a file has probes on collectives
	at     time.Time
}

const (
	// openEvery is how often that is, at the least; the table has ten kilobytes for
	// each thread, and reading it is to take no more than a share of openShare.
	openEvery = time.Second
	openShare = 200
)

// lookForOpen tells the decoder what threads are in.
func (s *Session) lookForOpen(now time.Time) {
	if !s.open.wanted || now.Before(s.open.at) {
		return
	}
	begun := time.Now()
	calls, epoch := s.openCollectives()
	s.open.at = begun.Add(max(openEvery, openShare*time.Since(begun)))
	s.do(func(d *decoder) { d.writeOpen(now.UnixNano(), epoch, calls) })
}

// openCollectives reads which calls of collectives threads are in.
func (s *Session) openCollectives() (open []kernel.OpenFrame, epoch uint32) {
	return s.kernel.OpenFrames(func(spec uint32) bool {
		p := s.probes.table.Find(spec)
		return p != nil && (p.Planned.Function.Effect == catalog.AwaitsWork || isIssue(p.Planned.Function))
	})
}

// writeOpen writes what is open, if that has changed.
func (d *decoder) writeOpen(nowNS int64, epoch uint32, calls []kernel.OpenFrame) {
	var frames []waits.Frame
	for i := range calls {
		c := &calls[i]
		probe := d.probes.Find(c.Spec)
		if probe == nil {
			continue
		}
		f := probe.Planned.Function
		n := min(len(f.Values), len(c.Args))
		record := accel.Record{PID: c.Tgid, TID: c.TID, Args: c.Args[:n], Faults: probe.Planned.Unknown}
		var a accel.Arguments
		a.Read(f, &record)
		said := collectiveCall(&a, c.Epoch)
		frame := waits.Frame{
			PID: int32(c.Tgid), TID: int32(c.TID), SpanID: int64(c.SpanID), StartNS: int64(c.StartNS) + d.offsetNS,
			Call: probe.Planned.Call, Work: said.Work, Group: said.Group, Number: said.Number, Line: int64(c.Line),
		}
		if probe.Stack && n < len(c.Args) {
			frame.StackID = d.stacks.IDOf(c.Args[n])
		}
		frames = append(frames, frame)
	}
	open := d.waits.Open(nowNS, epoch, frames)
	if !waits.Changed(&d.open, &open) {
		return
	}
	d.open = open
	rows := open
	rows.Calls = slices.Clone(open.Calls)
	for i := range rows.Calls {
		if line := uint64(rows.Calls[i].PythonStackID) &^ lineSourceBits; line != 0 {
			rows.Calls[i].PythonStackID = d.stacks.PythonOf(line)
		}
	}
	d.keep(d.sink.OpenCalls(rows))
}
