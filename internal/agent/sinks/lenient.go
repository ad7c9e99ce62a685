package sinks

import "github.com/ebpfprof/ebpfprof/tracer/event"

// Lenient keeps a session going whose raw events cannot be written any more: the
// patterns are what counts. It keeps the first error, which the worker tells.
type Lenient struct {
	To     event.Sink
	Failed error
}

// Keep remembers an error, if it is the first, and says that all is well.
func (l *Lenient) Keep(err error) error {
	if l.Failed == nil {
		l.Failed = err
	}
	return nil
}

// Write implements event.Sink.
func (l *Lenient) Write(b *event.Batch) error { return l.Keep(l.To.Write(b)) }
