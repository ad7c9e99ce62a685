package tracer

import "github.com/ebpfprof/ebpfprof/tracer/event"

// recordingSink keeps what it is given.
type recordingSink struct {
	event.Discard
	samples  []Sample
	stacks   []Stack
	spans    []Span // without those of reads and writes
	long     []Span // those
	io       []IO
	memory   []Memory
	slices   []Slice
	flows    []Flow
	warnings []Warning
}

func (s *recordingSink) Spans(rows []Span) error {
	for _, row := range rows {
		if row.Call.Layer == "io" {
			s.long = append(s.long, row)
		} else {
			s.spans = append(s.spans, row)
		}
	}
	return nil
}

func (s *recordingSink) IO(rows []IO) error         { s.io = append(s.io, rows...); return nil }
func (s *recordingSink) Memory(rows []Memory) error { s.memory = append(s.memory, rows...); return nil }
func (s *recordingSink) Slices(rows []Slice) error  { s.slices = append(s.slices, rows...); return nil }
func (s *recordingSink) Flows(rows []Flow) error    { s.flows = append(s.flows, rows...); return nil }
func (s *recordingSink) Samples(rows []Sample) error {
	s.samples = append(s.samples, rows...)
	return nil
}
func (s *recordingSink) Stacks(rows []Stack) error { s.stacks = append(s.stacks, rows...); return nil }
func (s *recordingSink) Warning(w Warning) error   { s.warnings = append(s.warnings, w); return nil }

// nowhere is a sink that counts the spans.
type nowhere struct {
	event.Discard
	spans int
}

func (n *nowhere) Spans(s []Span) error { n.spans += len(s); return nil }
