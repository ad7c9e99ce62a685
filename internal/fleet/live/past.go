package live

import (
	"github.com/ebpfprof/ebpfprof/internal/exchange/flightrecorder"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// past is a collective that a process asked for.
type past struct {
	communicator, number int64
	name, dtype          string
	created, stack       int64
	elements             *int64
	started, completed   *int64
}

// ring keeps the last of them, as many as the flight recorder does.
type ring struct {
	calls []past
	next  int // the oldest, once it is full
}

func (r *ring) issued(s *event.Span) {
	p := past{communicator: *s.Detail.Communicator, number: s.SequenceNumber, name: s.Call.Name, dtype: s.Detail.Dtype, created: s.StartNS,
		stack: s.PythonStackID, elements: s.Detail.ElementCount}
	if len(r.calls) < flightrecorder.MostEntries {
		r.calls = append(r.calls, p)
		return
	}
	r.calls[r.next] = p
	r.next = (r.next + 1) % len(r.calls)
}

// newest calls yield with those of the ring, the newest first, until that says false.
func (r *ring) newest(yield func(*past) bool) {
	for i := range r.calls {
		if !yield(&r.calls[(r.next-1-i+2*len(r.calls))%len(r.calls)]) {
			return
		}
	}
}

// ran takes a collective's own time, which has ended if its end was seen.
func (r *ring) ran(s *event.Span) {
	for p := range r.newest {
		if p.communicator != *s.Detail.Communicator || p.number != s.SequenceNumber {
			continue
		}
		start := s.StartNS
		p.started = &start
		if s.DurationNS >= 0 {
			end := s.StartNS + s.DurationNS
			p.completed = &end
		}
		return
	}
}

// last is the last one that the process asked a group for; nil is not known.
func (r *ring) last(communicator int64) *past {
	for p := range r.newest {
		if p.communicator == communicator {
			return p
		}
	}
	return nil
}

// all are copies, the oldest first.
func (r *ring) all() []past {
	return append(append([]past{}, r.calls[r.next:]...), r.calls[:r.next]...)
}

// stackTable keeps stacks, which come once in a recording: those that came or
// named last. A frame is kept once.
type stackTable struct {
	young, old map[int64]*keptStack
	frames     map[symbolize.Frame]*symbolize.Frame
}

type keptStack struct {
	frames []*symbolize.Frame
	status string // as an event.Stack's
}

// mostStacks are young at the same time, and as many old; of fewer, where their frames are
// more than mostFrames different ones.
const (
	mostStacks = 8192
	mostFrames = 131_072
)

func newStackTable() stackTable {
	return stackTable{young: map[int64]*keptStack{}, frames: map[symbolize.Frame]*symbolize.Frame{}}
}

func (t *stackTable) keep(s *event.Stack) {
	kept := &keptStack{status: s.Status, frames: make([]*symbolize.Frame, len(s.Frames))}
	for i, frame := range s.Frames {
		if frame.Function != "" && frame.Kind != symbolize.Python {
			frame.Offset = -1 // the name says it, and is shared by all that are in the function
		}
		f, known := t.frames[frame]
		if !known {
			f = &frame
			t.frames[frame] = f
		}
		kept.frames[i] = f
	}
	t.add(s.ID, kept)
}

func (t *stackTable) add(id int64, s *keptStack) {
	if len(t.young) >= mostStacks || len(t.frames) >= mostFrames {
		t.old, t.young = t.young, make(map[int64]*keptStack, mostStacks)
		clear(t.frames)
		for _, s := range t.old {
			for i, f := range s.frames {
				if same, known := t.frames[*f]; known {
					s.frames[i] = same
				} else {
					t.frames[*f] = f
				}
			}
		}
	}
	t.young[id] = s
}

// touch keeps a stack that is named again.
func (t *stackTable) touch(id int64) {
	if id == 0 || t.young[id] != nil {
		return
	}
	if s := t.old[id]; s != nil {
		delete(t.old, id)
		t.add(id, s)
	}
}

// of is a stack; nil is not known, or not any more.
func (t *stackTable) of(id int64) *keptStack {
	if s := t.young[id]; s != nil {
		return s
	}
	return t.old[id]
}
