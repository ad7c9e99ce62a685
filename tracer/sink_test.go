package tracer

import "github.com/ebpfprof/ebpfprof/tracer/event"

// recordingSink keeps what it is given.
type recordingSink struct {
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

// Write implements event.Sink.
func (s *recordingSink) Write(b *event.Batch) error {
	s.slices = append(s.slices, b.Slices...)
	s.stacks = append(s.stacks, b.Stacks...)
	s.samples = append(s.samples, b.Samples...)
	s.io = append(s.io, b.IO...)
	for _, row := range b.Spans {
		if row.Call.Layer == "io" {
			s.long = append(s.long, row)
		} else {
			s.spans = append(s.spans, row)
		}
	}
	s.memory = append(s.memory, b.Memory...)
	s.flows = append(s.flows, b.Flows...)
	s.warnings = append(s.warnings, b.Warnings...)
	return nil
}

// nowhere is a sink that counts the spans.
type nowhere struct {
	spans int
}

// Write implements event.Sink.
func (n *nowhere) Write(b *event.Batch) error {
	n.spans += len(b.Spans)
	return nil
}
