// Package live follows the steps of a job's workers while they are recorded: it takes
// events, and tells each step that ends and each degradation. It owns no goroutine and
// keeps nothing of a step that has ended but its period.
package live

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/trigger"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// mostThreads is how many threads with anchors are followed; idle is after how long without
// one a thread makes room for another: it may have ended long ago.
const (
	mostThreads = 256
	idle        = int64(10 * 60 * 1e9)
)

// Steps implements event.Sink. Calls come from one goroutine.
type Steps struct {
	constants trigger.Constants
	threads   map[thread]*loop
	ranks     map[int32]int32
	exits     map[int32]pattern.Exit // the last collective that each process has left
	ended     []ended                // those of late whose waits may still come, and older ones
	waits     []wait
	newest    int64
	triggers  []Degradation
	ignored   int64
	// sliced is since when anchors of some group are recorded in slices.
	sliced int64
	groups []string // which those are
	// waiting is since when each process has waited for its peers or stood still, of those that do.
	waiting map[int32]int64
}

// Degradation is a trigger and whose it is.
type Degradation struct {
	trigger.Trigger
	PID  int32
	Rank int32 // -1 without one
}

type thread struct{ pid, tid int32 }

// ended is a step of a thread.
type ended struct {
	pattern.Step
	tid int32
}

// wait is one of a thread's, in the units that a step's time is split by.
type wait struct {
	pid, tid     int32
	atNS, lastNS int64
}

// Samples are read in batches of their own, so that a step's waits may come after its
// end: a step is reported late ns after it. mostWaits bounds what is kept until then.
const (
	late      = int64(2e9)
	mostWaits = 100_000
	stepless  = int64(10e9) // how long the waits of a thread without steps are kept
)

// loop is one thread's.
type loop struct {
	detector steps.Detector
	watch    *trigger.Watch
	begin    int64 // of the step that runs, 0 before the first one
	fresh    bool  // the next anchor begins a step: one has just been completed
	anchors  int   // of the step that runs
	loading  int64 // ns, of the step that runs
	loads    bool  // a call of the loader was seen
	number   int64
	last     int64 // the end of its last anchor
}

// New makes one.
func New(c trigger.Constants) *Steps {
	return &Steps{constants: c, threads: map[thread]*loop{}, ranks: map[int32]int32{}, exits: map[int32]pattern.Exit{}}
}

func (s *Steps) detector() steps.Detector {
	return steps.Detector{Repeats: s.constants.Repeats, Patience: s.constants.Patience}
}

// Write implements event.Sink.
func (s *Steps) Write(b *event.Batch) error {
	for i := range b.Processes {
		s.addProcess(b.Processes[i])
	}
	s.addSpans(b.Spans)
	for i := range b.Warnings {
		s.addWarning(b.Warnings[i])
	}
	return nil
}

func (s *Steps) addProcess(p event.Process) {
	if p.Rank != nil {
		s.ranks[p.PID] = *p.Rank
	}
	if p.EndedNS != nil {
		delete(s.ranks, p.PID)
		delete(s.exits, p.PID)
		for t := range s.threads {
			if t.pid == p.PID {
				delete(s.threads, t)
			}
		}
	}
}

// addSpans takes spans. Rows come when calls end, those of one thread in the
// order of their ends.
func (s *Steps) addSpans(spans []event.Span) {
	for i := range spans {
		// Of what is recorded in slices most is missing: it shows no step.
		if class := classOf(spans[i].Call); class != 0 && spans[i].DurationNS >= 0 && spans[i].SliceID == 0 && spans[i].StartNS >= s.sliced {
			s.anchor(&spans[i], class)
		}
		s.exit(&spans[i])
	}
}

// addWarning takes a warning. Where the budget puts a group of anchors into slices,
// its calls are no longer seen one by one, and a worker does not hang for that: steps are
// learnt anew, by what is still seen of them.
func (s *Steps) addWarning(w event.Warning) {
	// Waits, reads and writes make no step: that they are not watched any more changes none.
	if w.Kind != "slice" || slices.Contains([]string{"detail", "waits", "io"}, w.Source) {
		return
	}
	s.sliced = max(s.sliced, w.TSNS)
	if !slices.Contains(s.groups, w.Source) {
		s.groups = append(s.groups, w.Source)
	}
	for _, l := range s.threads {
		l.detector, l.watch = s.detector(), trigger.New(s.constants)
		l.begin, l.fresh = 0, false
	}
}

// Wait tells since when processes have waited for their peers or stood still, of those that
// do; it is an Evidence's Standing.
func (s *Steps) Wait(since map[int32]int64) { s.waiting = since }

// exit remembers which collective a process has left last.
func (s *Steps) exit(span *event.Span) {
	c := span.Call
	if c.Layer != "collective" || c.Category != "work" || span.Detail == nil || span.Detail.Communicator == nil || span.SequenceNumber < 0 ||
		span.DurationNS < 0 {
		return
	}
	end := span.StartNS + span.DurationNS
	if _, known := s.exits[span.PID]; (known || len(s.exits) < mostThreads) && end > s.exits[span.PID].NS {
		s.exits[span.PID] = pattern.Exit{Communicator: *span.Detail.Communicator, Number: span.SequenceNumber, NS: end}
	}
}

func (s *Steps) anchor(span *event.Span, class steps.Class) {
	id := thread{span.PID, span.TID}
	l := s.threads[id]
	if l == nil {
		if len(s.threads) >= mostThreads {
			s.makeRoom(span.StartNS)
		}
		if len(s.threads) >= mostThreads {
			s.ignored++
			return
		}
		l = &loop{detector: s.detector(), watch: trigger.New(s.constants)}
		s.threads[id] = l
	}
	if class == steps.Load {
		l.loads = true
	}
	end := span.StartNS + span.DurationNS
	l.last = max(l.last, end)
	if l.fresh {
		if l.begin > 0 {
			l.end(s, id, span.StartNS)
		}
		l.begin, l.fresh, l.anchors, l.loading = span.StartNS, false, 0, 0
	}
	l.anchors++
	if class == steps.Load {
		l.loading += span.DurationNS
	}
	complete := l.detector.Push(steps.Anchor{Class: class, Name: span.Call.Name, Begin: span.StartNS, End: end})
	l.fresh = complete
	l.watch.Anchor(end, complete)
}

// makeRoom forgets the threads that have made no anchor for a while.
func (s *Steps) makeRoom(now int64) {
	for id, l := range s.threads {
		if l.last < now-idle {
			delete(s.threads, id)
		}
	}
}

// end tells of the step before the one that begins now.
func (l *loop) end(s *Steps, id thread, now int64) {
	period := now - l.begin
	loading := int64(-1)
	if l.loads {
		loading = l.loading
	}
	step := pattern.Step{PID: id.pid, Rank: s.rank(id.pid), Number: l.number, BeginNS: l.begin, PeriodNS: period, LoadNS: loading}
	if e, ok := s.exits[id.pid]; ok && e.NS >= l.begin && e.NS < now {
		step.Exit = &e
	}
	s.ended = append(s.ended, ended{step, id.tid})
	s.newest = max(s.newest, now)
	l.number++
	// With more anchors than a step has there was something else in it: evaluation.
	if l.anchors > len(l.detector.Sequence()) {
		return
	}
	if t := l.watch.Step(now, period); t != nil {
		s.triggers = append(s.triggers, Degradation{*t, id.pid, s.rank(id.pid)})
	}
}

func (s *Steps) rank(pid int32) int32 {
	if rank, ok := s.ranks[pid]; ok {
		return rank
	}
	return -1
}

// Check looks for workers that hang, at a time of the events' clock.
func (s *Steps) Check(nowNS int64) {
	for id, l := range s.threads {
		if t := l.watch.Check(nowNS, s.waiting[id.pid]); t != nil {
			s.triggers = append(s.triggers, Degradation{*t, id.pid, s.rank(id.pid)})
		}
	}
}

// Waited takes a wait of a thread for its peers; it is a pattern.Collector's Waited.
func (s *Steps) Waited(sample *event.Sample, class pattern.Class) {
	switch {
	case class != pattern.Collective:
	case len(s.waits) >= mostWaits:
		s.ignored++
	default:
		s.waits = append(s.waits, wait{sample.PID, sample.TID, sample.TSNS, sample.TSNS + sample.WeightNS})
	}
}

// Now is how many threads that train are slow, and how many hang.
func (s *Steps) Now() (slow, hanging int64) {
	for _, l := range s.threads {
		isSlow, hangs := l.watch.Now()
		if isSlow {
			slow++
		}
		if hangs {
			hanging++
		}
	}
	return slow, hanging
}

// Paced is whether the mean of some thread's steps is known, by which it would be blocked.
func (s *Steps) Paced() bool {
	for _, l := range s.threads {
		if _, ok := l.watch.MeanNS(); ok {
			return true
		}
	}
	return false
}

// LastNS is the last anchor of any thread, 0 before the first.
func (s *Steps) LastNS() (last int64) {
	for _, l := range s.threads {
		last = max(last, l.watch.LastNS())
	}
	return last
}

// Ignored is how many anchors and waits a limit has turned away.
func (s *Steps) Ignored() int64 { return s.ignored }

// Take returns the steps that ended a while ago, and what has degraded since the last
// call. With all it returns the steps that have just ended, too.
func (s *Steps) Take(all bool) (steps []pattern.Step, triggers []Degradation) {
	triggers, s.triggers = s.triggers, nil
	young := func(endNS int64) bool { return !all && endNS > s.newest-late }
	first := len(s.ended)
	for i, e := range s.ended {
		if young(e.BeginNS + e.PeriodNS) {
			first = i
			break
		}
	}
	settled := s.ended[:first]
	s.settle(settled)
	steps = make([]pattern.Step, 0, first)
	for _, e := range settled {
		steps = append(steps, e.Step)
	}
	// In place: a job of short steps has thousands that are kept here.
	s.ended = slices.Delete(s.ended, 0, first)
	s.forget()
	return steps, triggers
}

// forget drops the waits that no step of their thread can have any more.
func (s *Steps) forget() {
	if len(s.waits) == 0 {
		return
	}
	oldest := map[thread]int64{}
	for id, l := range s.threads {
		if l.begin > 0 {
			oldest[id] = l.begin
		}
	}
	for _, e := range s.ended {
		id := thread{e.PID, e.tid}
		if begin, ok := oldest[id]; !ok || e.BeginNS < begin {
			oldest[id] = e.BeginNS
		}
	}
	latest := s.newest
	for _, w := range s.waits {
		latest = max(latest, w.lastNS)
	}
	s.waits = slices.DeleteFunc(s.waits, func(w wait) bool {
		begin, ok := oldest[thread{w.pid, w.tid}]
		if !ok {
			begin = latest - stepless
		}
		return w.lastNS < begin
	})
}

// settle adds the waits to the steps that they were in.
func (s *Steps) settle(ended []ended) {
	if len(s.waits) == 0 {
		return
	}
	byThread := map[thread][]int{} // steps in order of time
	for i, e := range ended {
		id := thread{e.PID, e.tid}
		byThread[id] = append(byThread[id], i)
	}
	for _, w := range s.waits {
		mine := byThread[thread{w.pid, w.tid}]
		k, _ := slices.BinarySearchFunc(mine, w.atNS, func(i int, at int64) int { return cmp.Compare(ended[i].BeginNS+ended[i].PeriodNS, at+1) })
		for ; k < len(mine) && ended[mine[k]].BeginNS < w.lastNS; k++ {
			e := &ended[mine[k]]
			if inside := min(w.lastNS, e.BeginNS+e.PeriodNS) - max(w.atNS, e.BeginNS); inside > 0 {
				e.WaitNS += inside
			}
		}
	}
}

// Restart has every worker need as many new steps before it can be slow again.
func (s *Steps) Restart() {
	for _, l := range s.threads {
		l.watch.Restart()
		l.begin, l.fresh = 0, false
	}
}

// Sliced lists the groups of anchors that the budget records in slices.
func (s *Steps) Sliced() []string { return slices.Clone(s.groups) }

// Learnt is how many threads' steps are known, and what the best of them is made of.
func (s *Steps) Learnt() (n int, sequence string) {
	for _, l := range s.threads {
		if q := l.detector.Sequence(); q != "" {
			n++
			sequence = max(sequence, q)
		}
	}
	return n, sequence
}

// classOf says what kind of anchor a call is, 0 for none. It is the same rule as the
// query of internal/model/timeline; collectives and scopes of users count only where a
// thread has nothing else, which a live thread cannot know: they are left out.
func classOf(c *event.Call) steps.Class {
	switch {
	case c.Layer == "scope" && strings.HasPrefix(c.Name, "enumerate(DataLoader)#"):
		return steps.Load
	case c.Layer == "scope" && strings.HasPrefix(c.Name, "Optimizer.step#"):
		return steps.Optimize
	case c.Layer == "autograd" && c.Category == "backward":
		return steps.Backward
	case c.Layer == "runtime" && c.Category == "launch" && (c.Runtime == "pjrt" || c.Runtime == "neuron"):
		return steps.Execute
	}
	return 0
}
