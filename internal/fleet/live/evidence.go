package live

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/hang"
	"github.com/ebpfprof/ebpfprof/internal/exchange/flightrecorder"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// mostProcesses are kept of a job on a node: eight ranks and their loader workers.
const mostProcesses = 256

// Evidence keeps what a hang would be judged by: how far each rank of a node has come, what
// is open, where its threads stand, and what each has done before it. It implements
// event.Sink, owns no goroutine, and its size does not grow with time.
type Evidence struct {
	host      string
	open      event.OpenCalls
	processes map[int32]*evident
	stacks    stackTable
	lost      flightrecorder.Lost
}

// evident is a process.
type evident struct {
	rank      *int64
	framework bool
	started   int64
	ended     bool
	lastStack int64 // of its main thread
	calls     ring
}

// NewEvidence makes one of a node.
func NewEvidence(host string) *Evidence {
	return &Evidence{host: host, processes: map[int32]*evident{}, stacks: newStackTable()}
}

// Write implements event.Sink.
func (e *Evidence) Write(b *event.Batch) error {
	for i := range b.Processes {
		e.addProcess(b.Processes[i])
	}
	e.addStacks(b.Stacks)
	e.addSamples(b.Samples)
	e.addSpans(b.Spans)
	for i := range b.OpenCalls {
		e.addOpenCalls(b.OpenCalls[i])
	}
	return nil
}

func (e *Evidence) addProcess(p event.Process) {
	of := e.processes[p.PID]
	if of == nil || of.ended && p.EndedNS == nil { // its number may be another's by now
		if of == nil && len(e.processes) >= mostProcesses && !e.makeRoom() {
			return
		}
		of = &evident{}
		e.processes[p.PID] = of
	}
	of.framework, of.started, of.ended = of.framework || p.Framework != nil, p.StartedNS, p.EndedNS != nil
	if p.Rank != nil {
		rank := int64(*p.Rank)
		of.rank = &rank
	}
}

// makeRoom forgets a process that has ended.
func (e *Evidence) makeRoom() bool {
	for pid, of := range e.processes {
		if of.ended {
			delete(e.processes, pid)
			return true
		}
	}
	return false
}

func (e *Evidence) addSpans(spans []event.Span) {
	for i := range spans {
		s := &spans[i]
		if s.Call.Layer != "collective" || s.Detail == nil || s.Detail.Communicator == nil || s.SequenceNumber < 0 {
			continue
		}
		of := e.processes[s.PID]
		if of == nil {
			continue
		}
		switch s.Call.Category {
		case "issue":
			of.calls.issued(s)
			e.stacks.touch(s.PythonStackID)
		case "work":
			of.calls.ran(s)
		}
	}
}

// addSamples notes where a main thread was seen last.
func (e *Evidence) addSamples(samples []event.Sample) {
	for i := range samples {
		s := &samples[i]
		if s.TID != s.PID || s.StackID == nil {
			continue
		}
		if of := e.processes[s.PID]; of != nil {
			of.lastStack = *s.StackID
			e.stacks.touch(*s.StackID)
		}
	}
}

func (e *Evidence) addStacks(stacks []event.Stack) {
	for i := range stacks {
		e.stacks.keep(&stacks[i])
	}
}

func (e *Evidence) addOpenCalls(open event.OpenCalls) {
	open.Calls, open.Communicators, open.Threads = slices.Clone(open.Calls), slices.Clone(open.Communicators), slices.Clone(open.Threads)
	for _, c := range open.Calls {
		e.stacks.touch(c.PythonStackID)
	}
	e.open = open
}

// Lose tells how many rows were lost so far, by reason.
func (e *Evidence) Lose(atNS int64, rows map[string]uint64) {
	total, last, most := int64(0), "", uint64(0)
	for _, reason := range slices.Sorted(maps.Keys(rows)) {
		total += int64(rows[reason])
		if rows[reason] > most {
			last, most = reason, rows[reason]
		}
	}
	if total > e.lost.Rows {
		e.lost = flightrecorder.Lost{Rows: total, LastNS: atNS, Last: last}
	}
}

// Stood reports whether it is known where the threads of all processes with a framework
// stood at some time after this one.
func (e *Evidence) Stood(afterNS int64) bool {
	seen := map[int32]bool{}
	for _, t := range e.open.Threads {
		if t.SeenNS > afterNS {
			seen[t.PID] = true
		}
	}
	some := false
	for pid, of := range e.processes {
		if of.framework && !of.ended {
			if some = true; !seen[pid] {
				return false
			}
		}
	}
	return some
}

// Waiting is since when each process has waited for its peers in a collective, of those
// that do: one is open, or, where the budget has those in slices, a thread stands in one.
func (e *Evidence) Waiting() map[int32]int64 {
	since := map[int32]int64{}
	wait := func(pid int32, ns int64) {
		if first, known := since[pid]; !known || ns < first {
			since[pid] = ns
		}
	}
	for i := range e.open.Calls {
		if c := &e.open.Calls[i]; c.Call.Layer == "collective" {
			wait(c.PID, c.StartNS)
		}
	}
	for i := range e.open.Threads {
		t := &e.open.Threads[i]
		if t.SinceNS == nil || t.TID != t.PID || t.State == event.ThreadStopped || t.State == event.ThreadTraced {
			continue
		}
		if thread := e.thread(t); thread.Collective() != "" {
			wait(t.PID, *t.SinceNS)
		}
	}
	return since
}

// Standing is since when processes have waited so, or their main threads have not run.
func (e *Evidence) Standing() map[int32]int64 {
	since := e.Waiting()
	for i := range e.open.Threads {
		if t := &e.open.Threads[i]; t.SinceNS != nil && t.TID == t.PID {
			if first, known := since[t.PID]; !known || *t.SinceNS < first {
				since[t.PID] = *t.SinceNS
			}
		}
	}
	return since
}

// Recording is what the node knows at a time of the events' clock. Where threads stood
// counts from the time on at which the job was seen to go on last.
func (e *Evidence) Recording(nowNS, sinceNS int64) *hang.Recording {
	r := &hang.Recording{Host: e.host, Waits: map[hang.Of]hang.Wait{}, Threads: map[int64][]hang.Thread{}}
	for i := range e.open.Communicators {
		c := &e.open.Communicators[i]
		if c.ID == nil || c.Rank == nil || c.Ranks == nil {
			continue
		}
		m := hang.Member{Group: *c.ID, Name: cmp.Or(c.Description, c.Name), PID: int64(c.PID), Rank: int64(*c.Rank), Ranks: int64(*c.Ranks),
			Number: c.IssuedNumber, Collective: c.IssuedName}
		if of := e.processes[c.PID]; of != nil {
			m.Ended = of.ended
			// What is open is reported when it changes: later requests are in its calls.
			if last := of.calls.last(*c.ID); last != nil && (m.Number == nil || *m.Number < last.number) {
				m.Number, m.Collective = &last.number, last.name
			}
		}
		r.Members = append(r.Members, m)
	}
	slices.SortStableFunc(r.Members, func(a, b hang.Member) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Rank, b.Rank), cmp.Compare(numberOf(a), numberOf(b)))
	})
	for i := range e.open.Calls {
		e.wait(r, &e.open.Calls[i], nowNS)
	}
	for _, t := range e.open.Threads {
		if t.SeenNS >= sinceNS {
			r.Threads[int64(t.PID)] = append(r.Threads[int64(t.PID)], e.thread(&t))
		}
	}
	for pid, threads := range r.Threads {
		r.Threads[pid] = hang.Together(threads)
	}
	for _, pid := range slices.Sorted(maps.Keys(e.processes)) {
		if of := e.processes[pid]; of.framework && !of.ended {
			r.Processes = append(r.Processes, hang.Known{PID: int64(pid), Rank: of.rank})
		}
	}
	r.PlaceOf = func(stack int64) string { return hang.Place(frames(e.stacks.of(stack))) }
	r.LastPlace = func(pid int64) string {
		of := e.processes[int32(pid)]
		if of == nil {
			return ""
		}
		return hang.Place(frames(e.stacks.of(of.lastStack)))
	}
	return r
}

func numberOf(m hang.Member) int64 {
	if m.Number == nil {
		return -1
	}
	return *m.Number
}

// wait takes the first open collective of each process in each group.
func (e *Evidence) wait(r *hang.Recording, c *event.OpenCall, nowNS int64) {
	if c.Communicator < 0 || c.Communicator >= len(e.open.Communicators) || c.Number == nil {
		return
	}
	group := e.open.Communicators[c.Communicator].ID
	if group == nil {
		return
	}
	of := hang.Of{Group: *group, PID: int64(c.PID)}
	known, ok := r.Waits[of]
	w := hang.Wait{Number: *c.Number, Collective: c.Call.Name, Stack: c.PythonStackID, Seconds: float64(nowNS-c.StartNS) / 1e9}
	switch {
	case !ok || w.Number < known.Number:
	case w.Number > known.Number:
		w = known
	default: // the collective itself, and a thread that waits for it
		if c.Call.Category != "work" {
			w.Collective = known.Collective
		}
		w.Stack, w.Seconds = cmp.Or(w.Stack, known.Stack), max(w.Seconds, known.Seconds)
	}
	r.Waits[of] = w
}

func (e *Evidence) thread(t *event.StillThread) hang.Thread {
	thread := hang.Thread{TIDs: []int64{int64(t.TID)}, Main: t.TID == t.PID, Syscall: t.Syscall, State: t.State}
	if t.SinceNS != nil {
		still := float64(t.SeenNS-*t.SinceNS) / 1e9
		thread.Still = &still
	}
	if t.StackID != nil {
		thread.Stack = *t.StackID
		s := e.stacks.of(*t.StackID)
		thread.Frames, thread.Whole = frames(s), s != nil && s.status == event.StackComplete
	}
	return thread
}

// frames are those of a stack as a hang tells of them.
func frames(s *keptStack) (all []hang.Frame) {
	if s == nil {
		return nil
	}
	for _, f := range s.frames[:min(len(s.frames), hang.MostFrames)] {
		all = append(all, hang.Frame{Kind: string(f.Kind), Function: f.Function, File: f.File, Line: int64(f.Line), Module: f.Module})
	}
	return all
}

// Job is what each rank has done, for the flight recorder's dumps. The collective that a
// rank waits in has the stack of its main thread, where none was taken when it began.
func (e *Evidence) Job() *flightrecorder.Job {
	job := &flightrecorder.Job{Host: e.host, Frames: map[int64][]flightrecorder.Frame{}, Lost: e.lost}
	stands := map[int32]int64{}
	for _, t := range e.open.Threads {
		if t.TID == t.PID && t.StackID != nil {
			stands[t.PID] = *t.StackID
		}
	}
	waiting := map[[2]int64]int64{} // group and process: number
	for _, c := range e.open.Calls {
		if c.Communicator >= 0 && c.Communicator < len(e.open.Communicators) && c.Number != nil {
			if id := e.open.Communicators[c.Communicator].ID; id != nil {
				waiting[[2]int64{*id, int64(c.PID)}] = *c.Number
			}
		}
	}
	e.members(job)
	for _, pid := range slices.Sorted(maps.Keys(e.processes)) {
		for _, c := range e.processes[pid].calls.all() {
			if n, ok := waiting[[2]int64{c.communicator, int64(pid)}]; ok && n == c.number && c.stack == 0 {
				c.stack = stands[pid]
			}
			job.Calls = append(job.Calls, flightrecorder.Call{PID: int64(pid), Communicator: c.communicator, Number: c.number, Name: c.name,
				CreatedNS: c.created,
				Elements:  c.elements, Dtype: c.dtype, Stack: c.stack, StartedNS: c.started, CompletedNS: c.completed})
			if c.stack != 0 && job.Frames[c.stack] == nil {
				job.Frames[c.stack] = pythonFrames(e.stacks.of(c.stack))
			}
		}
	}
	return job
}

// members of groups, in the order that package flightrecorder asks for.
func (e *Evidence) members(job *flightrecorder.Job) {
	all := map[int32]*int64{} // ranks in the group of all, where the launcher says none
	for _, c := range e.open.Communicators {
		if c.Rank != nil && (c.Description == "default_pg" || c.Name == "0") {
			rank := int64(*c.Rank)
			all[c.PID] = &rank
		}
	}
	began := map[int64]int64{}
	for i := range e.open.Communicators {
		c := &e.open.Communicators[i]
		if c.ID == nil || c.Rank == nil || c.Ranks == nil {
			continue
		}
		m := flightrecorder.Member{Communicator: *c.ID, Name: c.Name, Description: cmp.Or(c.Description, "undefined"), PID: int64(c.PID),
			InGroup: int64(*c.Rank), Ranks: int64(*c.Ranks), Rank: all[c.PID], Completed: c.CompletedNumber}
		if of := e.processes[c.PID]; of != nil {
			m.Rank = cmp.Or(of.rank, m.Rank)
			began[m.PID] = of.started
		}
		job.Members = append(job.Members, m)
	}
	slices.SortStableFunc(job.Members, func(a, b flightrecorder.Member) int {
		return cmp.Or(cmp.Compare(a.Communicator, b.Communicator), cmp.Compare(a.InGroup, b.InGroup), cmp.Compare(began[a.PID], began[b.PID]))
	})
}

func pythonFrames(s *keptStack) []flightrecorder.Frame {
	all := []flightrecorder.Frame{}
	if s == nil {
		return all
	}
	for _, f := range s.frames {
		if f.Kind == symbolize.Python {
			all = append(all, flightrecorder.Frame{Name: f.Function, Filename: f.File, Line: int64(f.Line)})
		}
	}
	return all
}
