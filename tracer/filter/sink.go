package filter

import "github.com/ebpfprof/ebpfprof/tracer/event"

// Sink leaves the rows of devices and ranks out that are not to be recorded, and hands
// the rest on. It is for one goroutine.
type Sink struct {
	event.Sink
	Filter *Filter
	// LeftOut is how many rows it has kept from the sink.
	LeftOut int64

	others  map[int32]bool // processes of other ranks
	dropped spanIDs
}

// Losses says what was left out; s may be nil.
func (s *Sink) Losses() []event.Warning {
	if s == nil {
		return nil
	}
	return []event.Warning{{Kind: "excluded", Source: "filter", Count: s.LeftOut, Detail: "rows of other ranks and devices than --probe and --exclude leave: recorded, and not written"}}
}

// Process implements event.Sink: it tells of which rank a process is.
func (s *Sink) Process(p event.Process) error {
	if s.others == nil {
		s.others = map[int32]bool{}
	}
	if s.Filter.Number(Rank, p.Rank) {
		delete(s.others, p.PID)
	} else {
		s.others[p.PID] = true
	}
	return s.Sink.Process(p)
}

// keep is the rows that pass, in their old place.
func keep[T any](s *Sink, rows []T, pid func(*T) int32, device func(*T) *int32, left func(*T)) []T {
	kept := rows[:0]
	for i := range rows {
		if s.others[pid(&rows[i])] || !s.Filter.Number(Device, device(&rows[i])) {
			s.LeftOut++
			left(&rows[i])
			continue
		}
		kept = append(kept, rows[i])
	}
	return kept
}

// Spans implements event.Sink.
func (s *Sink) Spans(rows []event.Span) error {
	return s.Sink.Spans(keep(s, rows, func(r *event.Span) int32 { return r.PID }, deviceOf, func(r *event.Span) { s.dropped.add(r.ID) }))
}

func deviceOf(r *event.Span) *int32 {
	if r.Detail == nil {
		return nil
	}
	return r.Detail.DeviceID
}

// Memory implements event.Sink.
func (s *Sink) Memory(rows []event.Memory) error {
	return s.Sink.Memory(keep(s, rows, func(r *event.Memory) int32 { return r.PID }, func(r *event.Memory) *int32 { return r.DeviceID }, func(*event.Memory) {}))
}

// Samples implements event.Sink.
func (s *Sink) Samples(rows []event.Sample) error {
	return s.Sink.Samples(keep(s, rows, func(r *event.Sample) int32 { return r.PID }, func(*event.Sample) *int32 { return nil }, func(*event.Sample) {}))
}

// IO implements event.Sink.
func (s *Sink) IO(rows []event.IO) error {
	return s.Sink.IO(keep(s, rows, func(r *event.IO) int32 { return r.PID }, func(*event.IO) *int32 { return nil }, func(*event.IO) {}))
}

// Flows implements event.Sink. An edge goes with its spans.
func (s *Sink) Flows(rows []event.Flow) error {
	kept := rows[:0]
	for _, r := range rows {
		if s.dropped.has(r.FromSpanID) || s.dropped.has(r.ToSpanID) {
			s.LeftOut++
			continue
		}
		kept = append(kept, r)
	}
	return s.Sink.Flows(kept)
}

// OpenCalls implements event.Sink.
func (s *Sink) OpenCalls(o event.OpenCalls) error {
	o.Calls = keep(s, append([]event.OpenCall(nil), o.Calls...), func(r *event.OpenCall) int32 { return r.PID }, func(*event.OpenCall) *int32 { return nil }, func(*event.OpenCall) {})
	o.Threads = keep(s, append([]event.StillThread(nil), o.Threads...), func(r *event.StillThread) int32 { return r.PID }, func(*event.StillThread) *int32 { return nil }, func(*event.StillThread) {})
	return s.Sink.OpenCalls(o)
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
