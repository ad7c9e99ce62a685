// Package sinks has event sinks around event sinks: several of them, by turns of two
// goroutines, and one whose failure is not the session's.
package sinks

import (
	"errors"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Tee hands events to several sinks, one after the other. What one of them cannot take
// (a full disk) the others still get; the first error is returned.
type Tee []event.Sink

func each[T any](t Tee, rows T, to func(event.Sink, T) error) (err error) {
	for _, s := range t {
		err = errors.Join(err, to(s, rows))
	}
	return err
}

func (t Tee) Spans(r []event.Span) error        { return each(t, r, event.Sink.Spans) }
func (t Tee) Samples(r []event.Sample) error    { return each(t, r, event.Sink.Samples) }
func (t Tee) Stacks(r []event.Stack) error      { return each(t, r, event.Sink.Stacks) }
func (t Tee) Memory(r []event.Memory) error     { return each(t, r, event.Sink.Memory) }
func (t Tee) Slices(r []event.Slice) error      { return each(t, r, event.Sink.Slices) }
func (t Tee) OpenCalls(r event.OpenCalls) error { return each(t, r, event.Sink.OpenCalls) }
func (t Tee) Flows(r []event.Flow) error        { return each(t, r, event.Sink.Flows) }
func (t Tee) IO(r []event.IO) error             { return each(t, r, event.Sink.IO) }
func (t Tee) Counters(r []event.Counter) error  { return each(t, r, event.Sink.Counters) }
func (t Tee) Process(r event.Process) error     { return each(t, r, event.Sink.Process) }
func (t Tee) Thread(r event.Thread) error       { return each(t, r, event.Sink.Thread) }
func (t Tee) Library(r event.Library) error     { return each(t, r, event.Sink.Library) }
func (t Tee) Probes(r []event.Probe) error      { return each(t, r, event.Sink.Probes) }
func (t Tee) Warning(r event.Warning) error     { return each(t, r, event.Sink.Warning) }
