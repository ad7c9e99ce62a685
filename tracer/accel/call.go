package accel

import (
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Call is one call into a runtime, with all that is known of it.
type Call struct {
	*runtime
	pid, tid uint32
	f        *spec.Function
	r        *Record
	args     *Arguments
	text     string
	span     *event.Span // nil for what is no span
	outer    bool        // its work is that of a call inside it
	captured bool        // its work went into a graph
}

func (c *Call) detail() *event.Detail {
	return c.span.MakeDetail()
}

// Take fills a span from what is known of its process, and learns from it. text is
// the string that the call captured, "" for none.
func (s *State) Take(f *spec.Function, r *Record, args *Arguments, text string, span *event.Span) *Call {
	c := &Call{runtime: s.get(r.PID, f.Runtime), pid: r.PID, tid: r.TID, f: f, r: r, args: args, text: text, span: span}
	c.take()
	return c
}

func (c *Call) take() {
	if c.isKernel() {
		c.name()
	}
	c.setDevice()
	if c.interposes() {
		return
	}
	c.lists.size(c)
	c.communicate()
	c.capture()
	if c.f.Memory != nil && !c.captured && c.f.Effect != spec.AddsNode { // a graph's allocation is there when it runs
		c.allocate()
	}
	c.times.now = max(c.times.now, end(c.span))
	if c.span.Status == event.StatusOK || c.span.Status == event.StatusNotReady {
		c.apply()
	} else {
		c.graphs.fail(c)
		c.communicators.fail(c)
	}
}

// apply keeps what a call changed.
func (c *Call) apply() {
	if !c.asksForEffect() {
		return
	}
	if c.span.Status == event.StatusOK {
		c.state.names.apply(c)
		c.devices.apply(c)
		c.graphs.apply(c)
		c.lists.apply(c)
	}
	c.communicators.apply(c) // one that does not block is there while its making goes on
	c.times.apply(c)
	c.times.blocking(c)
}

// Await reports whether the call's row is kept back here, while the end of its work
// on the device is still to be seen: whoever has it drops it then.
func (c *Call) Await() (kept bool) {
	if c.outer {
		return false
	}
	if c.waits() {
		c.times.enqueue(c)
		return true
	}
	if c.isCaptured() {
		delete(c.times.events, c.args.value[spec.FieldEvent]) // it stands for what the list will run
	}
	return false
}

// Hint keeps what an instant says of the calls to come.
func (s *State) Hint(f *spec.Function, r *Record, args *Arguments) {
	s.names.apply(&Call{pid: r.PID, tid: r.TID, f: f, r: r, args: args})
}
