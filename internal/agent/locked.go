package agent

import (
	"sync"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// locked has the session's goroutine and the worker's take turns with the sinks.
type locked struct {
	sync.Mutex
	to tee
}

func (l *locked) do(f func() error) error {
	l.Lock()
	defer l.Unlock()
	return f()
}

func (l *locked) Spans(r []event.Span) error { return l.do(func() error { return l.to.Spans(r) }) }
func (l *locked) Samples(r []event.Sample) error {
	return l.do(func() error { return l.to.Samples(r) })
}
func (l *locked) Stacks(r []event.Stack) error  { return l.do(func() error { return l.to.Stacks(r) }) }
func (l *locked) Memory(r []event.Memory) error { return l.do(func() error { return l.to.Memory(r) }) }
func (l *locked) Slices(r []event.Slice) error  { return l.do(func() error { return l.to.Slices(r) }) }
func (l *locked) OpenCalls(r event.OpenCalls) error {
	return l.do(func() error { return l.to.OpenCalls(r) })
}
func (l *locked) Flows(r []event.Flow) error { return l.do(func() error { return l.to.Flows(r) }) }
func (l *locked) IO(r []event.IO) error      { return l.do(func() error { return l.to.IO(r) }) }
func (l *locked) Counters(r []event.Counter) error {
	return l.do(func() error { return l.to.Counters(r) })
}
func (l *locked) Process(r event.Process) error { return l.do(func() error { return l.to.Process(r) }) }
func (l *locked) Thread(r event.Thread) error   { return l.do(func() error { return l.to.Thread(r) }) }
func (l *locked) Library(r event.Library) error { return l.do(func() error { return l.to.Library(r) }) }
func (l *locked) Probes(r []event.Probe) error  { return l.do(func() error { return l.to.Probes(r) }) }
func (l *locked) Warning(r event.Warning) error { return l.do(func() error { return l.to.Warning(r) }) }
