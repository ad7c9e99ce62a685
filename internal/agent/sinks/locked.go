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

func (l *Locked) do(f func() error) error {
	l.Lock()
	defer l.Unlock()
	return f()
}

func (l *Locked) Spans(r []event.Span) error { return l.do(func() error { return l.To.Spans(r) }) }
func (l *Locked) Samples(r []event.Sample) error {
	return l.do(func() error { return l.To.Samples(r) })
}
func (l *Locked) Stacks(r []event.Stack) error  { return l.do(func() error { return l.To.Stacks(r) }) }
func (l *Locked) Memory(r []event.Memory) error { return l.do(func() error { return l.To.Memory(r) }) }
func (l *Locked) Slices(r []event.Slice) error  { return l.do(func() error { return l.To.Slices(r) }) }
func (l *Locked) OpenCalls(r event.OpenCalls) error {
	return l.do(func() error { return l.To.OpenCalls(r) })
}
func (l *Locked) Flows(r []event.Flow) error { return l.do(func() error { return l.To.Flows(r) }) }
func (l *Locked) IO(r []event.IO) error      { return l.do(func() error { return l.To.IO(r) }) }
func (l *Locked) Counters(r []event.Counter) error {
	return l.do(func() error { return l.To.Counters(r) })
}
func (l *Locked) Process(r event.Process) error { return l.do(func() error { return l.To.Process(r) }) }
func (l *Locked) Thread(r event.Thread) error   { return l.do(func() error { return l.To.Thread(r) }) }
func (l *Locked) Library(r event.Library) error { return l.do(func() error { return l.To.Library(r) }) }
func (l *Locked) Probes(r []event.Probe) error  { return l.do(func() error { return l.To.Probes(r) }) }
func (l *Locked) Warning(r event.Warning) error { return l.do(func() error { return l.To.Warning(r) }) }
