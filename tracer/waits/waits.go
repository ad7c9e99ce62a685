// Package waits follows the collectives of torch.distributed: which group of ranks was
// asked for which one, when a thread of the group ran it, who waited for it, and what
// has begun and not ended. It owns what is known of groups (c10d::ProcessGroupGloo,
// ProcessGroupNCCL) and of their works (c10d::Work), by their addresses in a process.
//
// One collective is several calls on several threads: the call that asks for it, in
// which it is queued; the library's thread that runs it and then ends it; a wait, or
// none. Their records come in the order in which they end, which is any.
//
// Nothing here is safe for concurrent use: one goroutine decodes.
//
// The package is no part of the public API: it may change with any version.
package waits

import (
	"maps"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Rows takes the edges between the calls of a collective.
type Rows interface{ Flow(event.Flow) }

// MemoryReader reads the memory of a process.
type MemoryReader interface {
	Read(pid uint32, address uint64, b []byte) error
}

// Kinds and methods of the edges.
const (
	FlowCollective = "collective"  // from the rank that came last to the work of the others
	FlowWait       = "launch_sync" // from a collective's work, or the call that asked for it, to the wait that it ended
	methodNumber   = "sequence_number"
	methodWork     = "work"
)

// Call is what a record says of a call.
type Call struct {
	Group  uint64 // the group's address, 0: not said
	Work   uint64 // the work's, 0: likewise
	Number int64  // how many collectives the group had numbered, -1: not known
	Epoch  uint32
	Sliced bool // calls of this kind are in slices
}

// Epochs say since when ends are seen: of what began before, none is. Calls in slices have
// an epoch of their own, that of the slice.
type Epochs struct{ All, Sliced uint32 }

func (e Epochs) passed(w *work) bool { return w.epoch < e.All || w.sliced && w.epoch < e.Sliced }

// work is one collective that a process has asked for.
type work struct {
	key      workKey
	group    *group // nil: a send or receive whose call has not ended yet
	call     *event.Call
	issueID  int64 // span of the call that asked for it
	startNS  int64
	tid      int32
	number   int64 // -1: it has none
	detail   *event.Detail
	line     int64
	epoch    uint32
	sliced   bool
	endpoint bool // a send or a receive: it ends with its wait
	progress
	runID   int64   // span of the thread that ran it, 0: not yet
	awaited []int64 // spans of waits that have ended before runID was known
}

// progress is how far a work has come.
type progress struct {
	issued   bool // the call that asked for it has ended
	failed   bool
	finished bool
	endNS    int64
}

type workKey struct {
	pid     int32
	address uint64
}

// State is what is known of the groups and works of all traced processes.
type State struct {
	rows   Rows
	memory MemoryReader
	groups groups
	works  works
	copies works           // those of NCCL, by the copy that the watchdog looks at
	queued map[int64]*work // by the span of the call that asks, until that has ended
	ran    map[int64]*work // that have ended, by the span of what ran them, until that has
	meets  meetings
	jobs   map[int32]Job
	// of counts the works and groups of each process that lives.
	of shares
	// Dropped counts works and groups for which there was no room.
	Dropped uint64
}

// Job is what is known of a process beside its calls.
type Job struct {
	ID        string // the launcher's or scheduler's; "" is absent
	WorldSize *int32
}

// New makes a State that reads what a group is called through memory.
func New(memory MemoryReader, rows Rows) *State {
	return &State{
		rows: rows, memory: memory, groups: groups{}, works: works{}, copies: works{}, queued: map[int64]*work{}, ran: map[int64]*work{},
		meets: newMeetings(), jobs: map[int32]Job{}, of: shares{},
	}
}

// Process tells of a process.
func (s *State) Process(pid int32, job Job) { s.jobs[pid] = job }

// Queue: the call of span issue has made a work of it.
func (s *State) Queue(pid, tid int32, issue, nowNS int64, runtime string, c Call) {
	if c.Work == 0 {
		return
	}
	key := workKey{pid, c.Work}
	if s.works[key] == nil && !s.works.room(s.of, pid) {
		s.Dropped++
		return
	}
	w := &work{key: key, issueID: issue, startNS: nowNS, tid: tid, number: -1, epoch: c.Epoch, sliced: c.Sliced, endpoint: c.Group == 0}
	if c.Group != 0 {
		w.group = s.group(pid, c.Group, runtime)
		w.number = queuedNumber(runtime, c.Number)
	}
	s.works.forget(s.of, key)
	s.works[key] = w
	s.of.process(pid).works++
	if len(s.queued) >= mostWorks {
		clear(s.queued) // of calls whose end was never seen
	}
	s.queued[issue] = w
}

// Issue takes the call that asked for a collective, when it has ended.
func (s *State) Issue(span *event.Span, c Call) {
	number := issuedNumber(span.Call.Runtime, c.Number)
	g := s.again(span.PID, c.Group, span.Call.Runtime, number)
	w := s.queued[span.ID]
	delete(s.queued, span.ID)
	if w != nil {
		if w.group = g; w.number < 0 && !w.endpoint {
			w.number = number
		}
		if w.endpoint {
			number = -1
		}
		w.call, w.startNS, w.detail, w.line, w.issued = span.Call, span.StartNS, span.Detail, span.PythonStackID, true
	}
	g.describe(span, number)
	if number < 0 {
		return
	}
	g.asked(number, span)
	if w == nil && span.DurationNS >= 0 && span.Status != event.StatusThrew && span.Call.Runtime == "gloo" {
		g.ended(number, span.StartNS+span.DurationNS) // it returned when it was through: a monitored barrier
	}
	if w != nil {
		s.meets.issued(s.rows, g, number, span)
	}
}

// Finish: a work has just ended, within the call of span run. That call's record may come
// much later, when another work has its address.
func (s *State) Finish(pid int32, run, nowNS int64, c Call) {
	key := workKey{pid, c.Work}
	if w := s.copies[key]; w != nil {
		delete(s.copies, key)
		s.of.process(pid).watched = true
		w.finish(nowNS)
		return
	}
	w := s.works[key]
	if w == nil || w.finished {
		return
	}
	w.finish(nowNS)
	if len(s.ran) >= mostWorks {
		clear(s.ran) // of calls whose end was never seen
	}
	s.ran[run] = w
}

func (w *work) finish(nowNS int64) {
	w.finished, w.endNS = true, nowNS
	if w.group != nil && w.number >= 0 && !w.failed {
		w.group.ended(w.number, nowNS)
	}
}

// Run takes the call in which the library's thread ran a work, when it has ended.
func (s *State) Run(span *event.Span, c Call) {
	w := s.ran[span.ID]
	delete(s.ran, span.ID)
	if w == nil {
		if w = s.works[workKey{span.PID, c.Work}]; w == nil || w.finished || w.startNS > span.StartNS+max(0, span.DurationNS) {
			return
		}
	}
	switch {
	case !w.finished && span.End == event.EndExitSite:
		w.finish(span.StartNS + span.DurationNS)
	case w.finished && (span.End == event.EndNextEntry || span.End == event.EndUnfinished) && w.endNS >= span.StartNS:
		// What it ends with was seen: an instruction that every end passes.
		span.DurationNS, span.End, span.Status = w.endNS-span.StartNS, event.EndExitSite, event.StatusOK
	}
	w.describe(span)
	w.runID = span.ID
	for _, wait := range w.awaited {
		s.rows.Flow(event.Flow{TSNS: w.endNS, FromSpanID: span.ID, ToSpanID: wait, Kind: FlowWait, Method: methodWork})
	}
	w.awaited = nil
	if w.group != nil && w.number >= 0 {
		s.meets.ran(s.rows, w.group, w.number, span)
	}
}

// Wait takes a wait for a work, when it has ended.
func (s *State) Wait(span *event.Span, c Call) {
	w := s.works[workKey{span.PID, c.Work}]
	if w == nil {
		return
	}
	w.describe(span)
	if w.endpoint && span.DurationNS >= 0 && span.Status == event.StatusOK {
		w.finish(span.StartNS + span.DurationNS)
	}
	switch {
	case span.DurationNS < 0:
	case w.runID != 0:
		s.rows.Flow(event.Flow{TSNS: span.StartNS, FromSpanID: w.runID, ToSpanID: span.ID, Kind: FlowWait, Method: methodWork})
	case w.group != nil && w.group.Runtime == "nccl":
		// No thread runs it. The wait is as a rule the current stream's, and returns at once.
		s.rows.Flow(event.Flow{TSNS: span.StartNS, FromSpanID: w.issueID, ToSpanID: span.ID, Kind: FlowWait, Method: methodWork})
	case !w.endpoint && len(w.awaited) < mostAwaited:
		w.awaited = append(w.awaited, span.ID)
	}
}

// mostAwaited is how many waits for one work are kept.
const mostAwaited = 8

// describe gives a call what is known of its work.
func (w *work) describe(span *event.Span) {
	if w.group == nil {
		return
	}
	w.group.describe(span, w.number)
	if w.detail != nil {
		d := span.MakeDetail()
		d.Bytes, d.Dtype, d.ElementCount, d.PeerRank = w.detail.Bytes, w.detail.Dtype, w.detail.ElementCount, w.detail.PeerRank
	}
}

// Ended forgets a process, but not how far it had come.
func (s *State) Ended(pid int32) {
	for key, w := range s.works {
		if key.pid == pid {
			s.works.forget(s.of, key)
			delete(s.queued, w.issueID)
		}
	}
	maps.DeleteFunc(s.copies, func(key workKey, _ *work) bool { return key.pid == pid })
	for key, g := range s.groups {
		if key.pid == pid {
			delete(s.groups, key)
			key.ended = true
			s.groups[key] = g
		}
	}
	delete(s.jobs, pid)
	delete(s.of, pid)
}
