package redact

import (
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Sink redacts events on their way to another one. Like every Sink it is called from
// one goroutine.
type Sink struct {
	event.Sink
	calls map[*event.Call]*event.Call
	spans []event.Span
}

// NewSink returns a Sink that passes on to.
func NewSink(to event.Sink) *Sink { return &Sink{Sink: to, calls: map[*event.Call]*event.Call{}} }

// mostCalls bounds what is kept of the names that were seen.
const mostCalls = 1 << 16

// Spans implements event.Sink.
func (s *Sink) Spans(rows []event.Span) error {
	s.spans = append(s.spans[:0], rows...)
	for i := range s.spans {
		s.spans[i].Call = s.call(s.spans[i].Call)
		s.spans[i].Detail = detail(s.spans[i].Detail)
	}
	return s.Sink.Spans(s.spans)
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
	if d == nil || d.Mount == "" && d.Path == "" && !strings.Contains(d.Symbol+d.Dtype+d.FusedOperators, "/") {
		return d
	}
	other := *d
	other.Symbol, other.Dtype = Text(d.Symbol), Text(d.Dtype)
	other.FusedOperators = Text(d.FusedOperators)
	other.Mount, other.FileSystem, other.Path = Path(d.Mount), Text(d.FileSystem), Path(d.Path)
	return &other
}

// Stacks implements event.Sink. A stack keeps its id, which is a hash of what its
// frames were.
func (s *Sink) Stacks(rows []event.Stack) error {
	rows = slices.Clone(rows)
	for i := range rows {
		frames := slices.Clone(rows[i].Frames)
		for j := range frames {
			f := &frames[j]
			f.File, f.Function, f.Module = Path(f.File), Text(f.Function), Path(f.Module)
		}
		rows[i].Frames, rows[i].Folded = frames, Text(rows[i].Folded)
	}
	return s.Sink.Stacks(rows)
}

// OpenCalls implements event.Sink. Groups of ranks are called what the job calls them.
func (s *Sink) OpenCalls(open event.OpenCalls) error {
	open.Calls, open.Communicators = slices.Clone(open.Calls), slices.Clone(open.Communicators)
	for i := range open.Calls {
		c := &open.Calls[i]
		c.Call, c.Dtype = s.call(c.Call), Text(c.Dtype)
	}
	for i := range open.Communicators {
		c := &open.Communicators[i]
		c.Name, c.Description, c.IssuedName = Text(c.Name), Text(c.Description), Text(c.IssuedName)
	}
	return s.Sink.OpenCalls(open)
}

// Counters implements event.Sink. Control groups are told apart, and not named.
func (s *Sink) Counters(rows []event.Counter) error {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Scope = Pseudonym(rows[i].Scope)
		rows[i].Device = Path(rows[i].Device)
	}
	return s.Sink.Counters(rows)
}

// IO implements event.Sink.
func (s *Sink) IO(rows []event.IO) error {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Mount, rows[i].FileSystem, rows[i].Device = Path(rows[i].Mount), Text(rows[i].FileSystem), Path(rows[i].Device)
		rows[i].Path = Path(rows[i].Path)
	}
	return s.Sink.IO(rows)
}

// Process implements event.Sink.
func (s *Sink) Process(row event.Process) error { return s.Sink.Process(Process(row)) }

// Thread implements event.Sink.
func (s *Sink) Thread(row event.Thread) error {
	row.Name = Text(row.Name)
	return s.Sink.Thread(row)
}

// Library implements event.Sink.
func (s *Sink) Library(row event.Library) error {
	row.Path = Path(row.Path)
	return s.Sink.Library(row)
}

// Probes implements event.Sink.
func (s *Sink) Probes(rows []event.Probe) error {
	rows = slices.Clone(rows)
	for i := range rows {
		p := &rows[i]
		p.Library, p.Symbol, p.Name, p.Reason = Path(p.Library), Text(p.Symbol), Text(p.Name), Text(p.Reason)
	}
	return s.Sink.Probes(rows)
}

// Warning implements event.Sink.
func (s *Sink) Warning(row event.Warning) error {
	row.Source, row.Detail = Text(row.Source), Text(row.Detail)
	return s.Sink.Warning(row)
}
