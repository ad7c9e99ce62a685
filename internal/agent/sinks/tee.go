// Package sinks has event sinks around event sinks: several of them, by turns of two
// goroutines, and one whose failure is not the session's.
package sinks

import (
	"errors"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Tee hands events to several sinks, one after the other. What one of them cannot take
// (a full disk) the others still get; all errors are returned together.
type Tee []event.Sink

// Write implements event.Sink.
func (t Tee) Write(b *event.Batch) (err error) {
	for _, s := range t {
		err = errors.Join(err, s.Write(b))
	}
	return err
}
