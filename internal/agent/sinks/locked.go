package sinks

import (
	"sync"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Locked has the session's goroutine and the worker's take turns with the sinks.
type Locked struct {
	sync.Mutex
	To Tee
}

// Write implements event.Sink.
func (l *Locked) Write(b *event.Batch) error {
	l.Lock()
	defer l.Unlock()
	return l.To.Write(b)
}
