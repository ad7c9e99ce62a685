package redact

import (
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Sink redacts events on their way to another one. Like every Sink it is called from
// one goroutine.
type Sink struct {
	to    event.Sink
	calls map[*event.Call]*event.Call
	spans []event.Span // of the last batch; there may be a million a second
}

// NewSink returns a Sink that passes on to.
func NewSink(to event.Sink) *Sink { return &Sink{to: to, calls: map[*event.Call]*event.Call{}} }

// mostCalls bounds what is kept of the names that were seen.
const mostCalls = 1 << 16

// Write implements event.Sink.
func (s *Sink) Write(b *event.Batch) error {
	out := *b
	out.Processes = each(b.Processes, func(p *event.Process) { *p = Process(*p) })
	out.Threads = each(b.Threads, func(t *event.Thread) { t.Name = Text(t.Name) })
	out.Libraries = each(b.Libraries, func(l *event.Library) { l.Path = Path(l.Path) })
	out.ShortProcesses = each(b.ShortProcesses, func(p *event.ShortProcess) { p.Command = Text(p.Command) })
	out.Stacks = each(b.Stacks, stack)
	out.IO = each(b.IO, func(r *event.IO) {
		r.Mount, r.FileSystem, r.Device, r.Path = Path(r.Mount), Text(r.FileSystem), Path(r.Device), Path(r.Path)
	})
	out.Spans = s.spansOf(b.Spans)
	// Control groups stay distinct, without their names.
	out.Counters = each(b.Counters, func(c *event.Counter) { c.Scope, c.Device = Pseudonym(c.Scope), Path(c.Device) })
	out.OpenCalls = each(b.OpenCalls, s.openCalls)
	out.Probes = each(b.Probes, func(p *event.Probe) {
		p.Library, p.Symbol, p.Name, p.Reason = Path(p.Library), Text(p.Symbol), Text(p.Name), Text(p.Reason)
	})
	out.Warnings = each(b.Warnings, func(w *event.Warning) { w.Source, w.Detail = Text(w.Source), Text(w.Detail) })
	return s.to.Write(&out)
}

// each changes copies of rows.
func each[T any](rows []T, change func(*T)) []T {
	rows = slices.Clone(rows)
	for i := range rows {
		change(&rows[i])
	}
	return rows
}

func (s *Sink) spansOf(rows []event.Span) []event.Span {
	s.spans = append(s.spans[:0], rows...)
	for i := range s.spans {
		s.spans[i].Call = s.call(s.spans[i].Call)
		s.spans[i].Detail = detail(s.spans[i].Detail)
	}
	return s.spans
}

// call is a call whose name has no directories; scopes can be called anything.
func (s *Sink) call(c *event.Call) *event.Call {
	if c == nil {
		return nil
	}
	if known, ok := s.calls[c]; ok {
		return known
	}
	redacted := c
	name := Text(c.Name)
	if file, rest, ok := strings.Cut(name, "("); ok && c.Layer == "python" { // proj/train.py(12): step
		name = Path(file) + "(" + rest
	}
	if name != c.Name {
		other := *c
		other.Name = name
		redacted = &other
	}
	if len(s.calls) >= mostCalls {
		clear(s.calls)
	}
	s.calls[c] = redacted
	return redacted
}

func detail(d *event.Detail) *event.Detail {
	if d == nil || d.Mount == "" && d.Path == "" && !strings.Contains(d.Symbol+d.Dtype+d.FusedOperators+d.Arguments, "/") {
		return d
	}
	other := *d
	other.Symbol, other.Dtype = Text(d.Symbol), Text(d.Dtype)
	other.FusedOperators, other.Arguments = Text(d.FusedOperators), Text(d.Arguments)
	other.Mount, other.FileSystem, other.Path = Path(d.Mount), Text(d.FileSystem), Path(d.Path)
	return &other
}

// stack redacts a stack, which keeps its id: a hash of what its frames were.
func stack(s *event.Stack) {
	s.Frames = each(s.Frames, func(f *event.Frame) {
		f.File, f.Function, f.Module = Path(f.File), Text(f.Function), Path(f.Module)
	})
	s.Folded = Text(s.Folded)
}

// openCalls redacts what is open. Groups of ranks are called what the job calls them.
func (s *Sink) openCalls(open *event.OpenCalls) {
	open.Calls = each(open.Calls, func(c *event.OpenCall) { c.Call, c.Dtype = s.call(c.Call), Text(c.Dtype) })
	open.Communicators = each(open.Communicators, func(c *event.Communicator) {
		c.Name, c.Description, c.IssuedName = Text(c.Name), Text(c.Description), Text(c.IssuedName)
	})
}
