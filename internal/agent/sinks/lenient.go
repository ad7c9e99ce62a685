package sinks

import "github.com/ebpfprof/ebpfprof/tracer/event"

// Lenient keeps a session going whose raw events cannot be written any more: the
// patterns are what counts. It keeps the first error, which the worker tells.
type Lenient struct {
	event.Sink
	Failed error
}

// Keep remembers an error, if it is the first, and says that all is well.
func (l *Lenient) Keep(err error) error {
	if l.Failed == nil {
		l.Failed = err
	}
	return nil
}

func (l *Lenient) Spans(r []event.Span) error       { return l.Keep(l.Sink.Spans(r)) }
func (l *Lenient) Samples(r []event.Sample) error   { return l.Keep(l.Sink.Samples(r)) }
func (l *Lenient) Stacks(r []event.Stack) error     { return l.Keep(l.Sink.Stacks(r)) }
func (l *Lenient) Memory(r []event.Memory) error    { return l.Keep(l.Sink.Memory(r)) }
func (l *Lenient) Slices(r []event.Slice) error     { return l.Keep(l.Sink.Slices(r)) }
func (l *Lenient) Flows(r []event.Flow) error       { return l.Keep(l.Sink.Flows(r)) }
func (l *Lenient) IO(r []event.IO) error            { return l.Keep(l.Sink.IO(r)) }
func (l *Lenient) Counters(r []event.Counter) error { return l.Keep(l.Sink.Counters(r)) }
func (l *Lenient) Process(r event.Process) error    { return l.Keep(l.Sink.Process(r)) }
func (l *Lenient) Thread(r event.Thread) error      { return l.Keep(l.Sink.Thread(r)) }
func (l *Lenient) Library(r event.Library) error    { return l.Keep(l.Sink.Library(r)) }
func (l *Lenient) Probes(r []event.Probe) error     { return l.Keep(l.Sink.Probes(r)) }
func (l *Lenient) Warning(r event.Warning) error    { return l.Keep(l.Sink.Warning(r)) }
