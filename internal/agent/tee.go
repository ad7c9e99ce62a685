package agent

import (
	"errors"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// tee hands events to several sinks, one after the other. What one of them cannot take
// (a full disk) the others still get; the first error is returned.
type tee []event.Sink

func each[T any](t tee, rows T, to func(event.Sink, T) error) (err error) {
	for _, s := range t {
		err = errors.Join(err, to(s, rows))
	}
	return err
}

func (t tee) Spans(r []event.Span) error        { return each(t, r, event.Sink.Spans) }
func (t tee) Samples(r []event.Sample) error    { return each(t, r, event.Sink.Samples) }
func (t tee) Stacks(r []event.Stack) error      { return each(t, r, event.Sink.Stacks) }
func (t tee) Memory(r []event.Memory) error     { return each(t, r, event.Sink.Memory) }
func (t tee) Slices(r []event.Slice) error      { return each(t, r, event.Sink.Slices) }
func (t tee) OpenCalls(r event.OpenCalls) error { return each(t, r, event.Sink.OpenCalls) }
func (t tee) Flows(r []event.Flow) error        { return each(t, r, event.Sink.Flows) }
func (t tee) IO(r []event.IO) error             { return each(t, r, event.Sink.IO) }
func (t tee) Counters(r []event.Counter) error  { return each(t, r, event.Sink.Counters) }
func (t tee) Process(r event.Process) error     { return each(t, r, event.Sink.Process) }
func (t tee) Thread(r event.Thread) error       { return each(t, r, event.Sink.Thread) }
func (t tee) Library(r event.Library) error     { return each(t, r, event.Sink.Library) }
func (t tee) Probes(r []event.Probe) error      { return each(t, r, event.Sink.Probes) }
func (t tee) Warning(r event.Warning) error     { return each(t, r, event.Sink.Warning) }
