package filter

import (
	"slices"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Sink leaves the rows of devices and ranks out that are not to be recorded, and hands
// the rest on. It is for one goroutine.
type Sink struct {
	To     event.Sink
	Filter *Filter
	// LeftOut is how many rows it has kept from the sink.
	LeftOut int64

	others  map[int32]bool // processes of other ranks
	dropped spanIDs
	passing passing
}

// passing are the rows of a batch that pass where some do not, kept for the next batch's.
type passing struct {
	spans   []event.Span
	memory  []event.Memory
	samples []event.Sample
	short   []event.ShortProcess
	io      []event.IO
	flows   []event.Flow
}

// Losses says what was left out; s may be nil.
func (s *Sink) Losses() []event.Warning {
	if s == nil {
		return nil
	}
	return []event.Warning{{Kind: "excluded", Source: "filter", Count: s.LeftOut,
		Detail: "rows of other ranks and devices than --probe and --exclude leave: recorded, and not written"}}
}

// Write implements event.Sink.
func (s *Sink) Write(b *event.Batch) error {
	out := *b
	s.processes(b.Processes)
	out.Spans = keep(&s.passing.spans, b.Spans, s.span)
	out.Memory = keep(&s.passing.memory, b.Memory, func(r *event.Memory) bool { return s.passes(r.PID, r.DeviceID) })
	out.Samples = keep(&s.passing.samples, b.Samples, func(r *event.Sample) bool { return s.passes(r.PID, nil) })
	out.ShortProcesses = keep(&s.passing.short, b.ShortProcesses, func(r *event.ShortProcess) bool { return s.passes(r.ParentPID, nil) })
	out.IO = keep(&s.passing.io, b.IO, func(r *event.IO) bool { return s.passes(r.PID, nil) })
	out.Flows = keep(&s.passing.flows, b.Flows, s.flow)
	if len(b.OpenCalls) > 0 {
		out.OpenCalls = slices.Clone(b.OpenCalls)
		for i := range out.OpenCalls {
			s.openCalls(&out.OpenCalls[i])
		}
	}
	return s.To.Write(&out)
}

// processes notes of which rank processes are.
func (s *Sink) processes(rows []event.Process) {
	if s.others == nil {
		s.others = map[int32]bool{}
	}
	for i := range rows {
		if p := &rows[i]; s.Filter.Number(Rank, p.Rank) {
			delete(s.others, p.PID)
		} else {
			s.others[p.PID] = true
		}
	}
}

// keep is the rows that pass: the rows themselves where all do, else copies in a buffer.
func keep[T any](buffer *[]T, rows []T, passes func(*T) bool) []T {
	for i := range rows {
		if passes(&rows[i]) {
			continue
		}
		kept := append((*buffer)[:0], rows[:i]...)
		for j := i + 1; j < len(rows); j++ {
			if passes(&rows[j]) {
				kept = append(kept, rows[j])
			}
		}
		*buffer = kept
		return kept
	}
	return rows
}

// passes reports whether a row of a process and a device is to be recorded, and counts it
// if it is not.
func (s *Sink) passes(pid int32, device *int32) bool {
	if s.others[pid] || !s.Filter.Number(Device, device) {
		s.LeftOut++
		return false
	}
	return true
}

func (s *Sink) span(r *event.Span) bool {
	var device *int32
	if r.Detail != nil {
		device = r.Detail.DeviceID
	}
	if !s.passes(r.PID, device) {
		s.dropped.add(r.ID)
		return false
	}
	return true
}

// flow passes an edge whose spans both do.
func (s *Sink) flow(r *event.Flow) bool {
	if s.dropped.has(r.FromSpanID) || s.dropped.has(r.ToSpanID) {
		s.LeftOut++
		return false
	}
	return true
}

func (s *Sink) openCalls(o *event.OpenCalls) {
	o.Calls = keep(new([]event.OpenCall), o.Calls, func(r *event.OpenCall) bool { return s.passes(r.PID, nil) })
	o.Threads = keep(new([]event.StillThread), o.Threads, func(r *event.StillThread) bool { return s.passes(r.PID, nil) })
}

// mostDropped is how many ids of spans that were left out are kept, about: an edge comes
// soon after its span.
const mostDropped = 1 << 16

// spanIDs are the last spans that were left out.
type spanIDs struct{ young, old map[int64]bool }

func (d *spanIDs) add(id int64) {
	if len(d.young) >= mostDropped || d.young == nil {
		d.young, d.old = map[int64]bool{}, d.young
	}
	d.young[id] = true
}

func (d *spanIDs) has(id int64) bool { return d.young[id] || d.old[id] }
