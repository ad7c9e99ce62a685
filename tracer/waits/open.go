package waits

import (
	"cmp"
	"slices"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// OpenAfter is how long a call must have gone on to be a row of what is open, ns.
const OpenAfter = int64(500e6)

// Frame is a call that a thread is in, as the kernel has it.
type Frame struct {
	PID, TID int32
	SpanID   int64
	StartNS  int64
	Call     *event.Call
	Work     uint64
	Group    uint64
	Number   int64 // as in Call
	StackID  *int64
	Line     int64 // id of a stack of Python frames
}

// Open lists what is open: collectives that have not ended, and the calls that threads
// are in. What began before the epochs has no visible end.
func (s *State) Open(nowNS int64, since Epochs, frames []Frame) event.OpenCalls {
	open := event.OpenCalls{SeenNS: nowNS}
	open.Communicators = s.Communicators()
	places := map[*group]int{}
	for _, g := range s.groups {
		places[g], _ = slices.BinarySearchFunc(open.Communicators, g.Communicator, compareCommunicators)
	}
	place := func(g *group) int {
		if at, ok := places[g]; ok {
			return at
		}
		return -1
	}
	for w := range begun(s, since) {
		if w.finished || !w.issued || nowNS-w.startNS < OpenAfter {
			continue
		}
		c := event.OpenCall{
			StartNS: w.startNS, PID: w.key.pid, TID: w.tid, SpanID: w.issueID, Communicator: place(w.group),
			Call: &event.Call{Layer: w.call.Layer, Category: "work", Runtime: w.call.Runtime, Name: w.call.Name}, PythonStackID: w.line,
		}
		describe(&c, w)
		open.Calls = append(open.Calls, c)
	}
	for i := range frames {
		f := &frames[i]
		if nowNS-f.StartNS < OpenAfter {
			continue
		}
		c := event.OpenCall{
			StartNS: f.StartNS, PID: f.PID, TID: f.TID, SpanID: f.SpanID, Call: f.Call, Communicator: -1, StackID: f.StackID, PythonStackID: f.Line,
		}
		if w := s.works[workKey{f.PID, f.Work}]; w != nil && f.Work != 0 {
			c.Communicator = place(w.group)
			describe(&c, w)
		} else if f.Group != 0 {
			c.Communicator = place(s.group(f.PID, f.Group, f.Call.Runtime))
			if n := issuedNumber(f.Call.Runtime, f.Number); n >= 0 {
				c.Number = &n
			}
		}
		open.Calls = append(open.Calls, c)
	}
	slices.SortFunc(open.Calls, func(a, b event.OpenCall) int {
		return cmp.Or(cmp.Compare(a.StartNS, b.StartNS), cmp.Compare(a.SpanID, b.SpanID), cmp.Compare(a.Call.Category, b.Call.Category))
	})
	return open
}

// Communicators are the groups of ranks as they are now, those of a process one after
// the other.
func (s *State) Communicators() (all []event.Communicator) {
	for _, g := range s.groups {
		all = append(all, g.Communicator)
	}
	slices.SortFunc(all, compareCommunicators)
	return all
}

// describe gives a row what is known of its work.
func describe(c *event.OpenCall, w *work) {
	if n := w.number; n >= 0 {
		c.Number = &n
	}
	if d := w.detail; d != nil {
		c.Bytes, c.Dtype, c.ElementCount, c.PeerRank = d.Bytes, d.Dtype, d.ElementCount, d.PeerRank
	}
}

func compareCommunicators(a, b event.Communicator) int {
	return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.Handle, b.Handle))
}

// Changed reports whether what is open is not what was: other calls, or a group that has
// gone on while something is open.
func Changed(was, is *event.OpenCalls) bool {
	if len(was.Calls) != len(is.Calls) || len(was.Communicators) != len(is.Communicators) || !slices.Equal(was.Threads, is.Threads) {
		return true
	}
	for i := range is.Calls {
		if was.Calls[i].SpanID != is.Calls[i].SpanID || was.Calls[i].Call.Category != is.Calls[i].Call.Category {
			return true
		}
	}
	if len(is.Calls) == 0 {
		return false
	}
	same := func(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }
	for i := range is.Communicators {
		a, b := &was.Communicators[i], &is.Communicators[i]
		if !same(a.IssuedNumber, b.IssuedNumber) || !same(a.CompletedNumber, b.CompletedNumber) {
			return true
		}
	}
	return false
}
