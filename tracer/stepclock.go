package tracer

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
)

// stepClock tells where in its training step a process was. A step does different
// things one after the other: forward, backward, optimizer. A slice of two and a
// half steps sees some of that twice and some three times; weighed by its length
// alone, its rows would claim a fifth more calls of the one than of the other. So
// where what marks the steps is recorded all the time, each row of such a slice
// stands for as many calls as there were steps in the stretch, by how often the
// slice came past its place in the step.
//
// The decoder writes it, the governor reads it.
type stepClock struct {
	mu        sync.Mutex
	processes map[int32]stepTimes
}

// step is one step of a process, up to the beginning of the next one. It begins here
// where its backward pass does. Times are nanoseconds since the Unix epoch.
type step struct {
	begin int64
	// marks are the moments in it that are recorded in every step: the end of the
	// backward pass, the ends of what the optimizer does. Between two of them time
	// passes alike in all steps; over the whole of a step it does not, where a
	// forward pass waits for data.
	marks []int64
}

// stepTimes are the steps of a process, in order.
type stepTimes []step

const (
	// keptSteps is how many steps of a process are kept, at the least, and
	// keptStepping of how many processes, at the most.
	keptSteps    = 4096
	keptStepping = 1024
	// mostMarks bounds those of a step.
	mostMarks = 32
	// recentSteps is over how many the length of a step is taken.
	recentSteps = 8
)

func newStepClock() *stepClock { return &stepClock{processes: map[int32]stepTimes{}} }

// after is the index of the first step that begins at a time or later.
func (b stepTimes) after(at int64) int {
	i, _ := slices.BinarySearchFunc(b, at, func(s step, at int64) int { return cmp.Compare(s.begin, at) })
	return i
}

// saw notes a call of what a step calls once. One that lies inside another, a
// backward pass that starts a second one, is no step.
func (c *stepClock) saw(pid int32, start, end int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.processes[pid]
	if b == nil && len(c.processes) >= keptStepping {
		delete(c.processes, c.longestGone())
	}
	first := b.after(start)
	b = slices.Replace(b, first, b.after(end), step{begin: start, marks: []int64{end}})
	if len(b) > 2*keptSteps {
		b = slices.Delete(b, 0, len(b)-keptSteps)
	}
	c.processes[pid] = b
}

// mark notes both ends of something else that each step does.
func (c *stepClock) mark(pid int32, start, end int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.processes[pid]
	for _, at := range []int64{start, end} {
		i := b.after(at+1) - 1
		if i < 0 || len(b[i].marks) >= mostMarks {
			continue
		}
		where, _ := slices.BinarySearch(b[i].marks, at)
		b[i].marks = slices.Insert(b[i].marks, where, at)
	}
}

// longestGone is the process whose last step is the oldest.
func (c *stepClock) longestGone() (oldest int32) {
	last := int64(math.MaxInt64)
	for pid, b := range c.processes {
		if at := b[len(b)-1].begin; at < last {
			oldest, last = pid, at
		}
	}
	return oldest
}

// forget begins anew: from here on, not every step is seen.
func (c *stepClock) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.processes)
}

// steps are the times of each process's steps. They are the caller's.
func (c *stepClock) steps() map[int32]stepTimes {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[int32]stepTimes, len(c.processes))
	for pid, b := range c.processes {
		copied := slices.Clone(b)
		for i := range copied {
			copied[i].marks = slices.Clone(copied[i].marks)
		}
		all[pid] = copied
	}
	return all
}

// longest is how long the longest of the recent steps of any process was; 0 where
// none is known.
func (c *stepClock) longest() (length time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.processes {
		for i := max(1, len(b)-recentSteps); i < len(b); i++ {
			length = max(length, time.Duration(b[i].begin-b[i-1].begin))
		}
	}
	return length
}

// moved is a step like this one at another time.
func (s step) moved(by int64) step {
	m := step{begin: s.begin + by, marks: slices.Clone(s.marks)}
	for i := range m.marks {
		m.marks[i] += by
	}
	return m
}

// around returns the steps between two times with what lies at both ends and was not
// seen: up to two steps before the first one, since a recording begins in the middle
// of one and its marks begin with backward passes, and two behind the last one, of
// which one is under way and the other may have just begun. The last step has no end.
func (b stepTimes) around(from, to int64) stepTimes {
	if len(b) < 2 {
		return nil
	}
	first, last := b.after(from), b.after(to)
	within := slices.Clone(b[max(0, first-1):min(len(b), last+1)])
	if first == 0 {
		usual := b[1].begin - b[0].begin
		within = slices.Insert(within, 0, b[0].moved(-2*usual), b[0].moved(-usual))
	}
	if n := len(b); last == n {
		usual := b[n-1].begin - b[n-2].begin
		within[len(within)-1] = b[n-2].moved(usual) // it is not over: some of its marks are missing
		within = append(within, b[n-2].moved(2*usual), b[n-2].moved(3*usual))
	}
	return within
}

// place is where in its step a process was: behind which mark, and how much of the
// way to the next one, from 0 to 1; and how much of the whole step.
type place struct {
	marks, behind int
	share, whole  float64
}

// bounds are the marks around a part of a step that has an end.
func (b stepTimes) bounds(i, behind int) (from, to int64) {
	from, to = b[i].begin, b[i+1].begin
	if behind > 0 {
		from = b[i].marks[behind-1]
	}
	if behind < len(b[i].marks) {
		to = b[i].marks[behind]
	}
	return from, to
}

// place is in which step a time lies, and where in it; -1 where it lies in none.
func (b stepTimes) place(at int64) (int, place) {
	i := b.after(at+1) - 1
	if i < 0 || i+1 >= len(b) {
		return -1, place{}
	}
	p := place{marks: len(b[i].marks), whole: share(at, b[i].begin, b[i+1].begin)}
	for p.behind < p.marks && b[i].marks[p.behind] <= at {
		p.behind++
	}
	from, to := b.bounds(i, p.behind)
	p.share = share(at, from, to)
	return i, p
}

func share(at, from, to int64) float64 { return float64(at-from) / float64(max(1, to-from)) }

// time is when a step was at a place.
func (b stepTimes) time(i int, p place) int64 {
	from, to, share := b[i].begin, b[i+1].begin, p.whole
	if len(b[i].marks) == p.marks {
		from, to = b.bounds(i, p.behind)
		share = p.share
	}
	return from + int64(math.Round(share*float64(to-from)))
}

// between is how many steps lie between two times, of those that are known.
func (b stepTimes) between(from, to int64) float64 {
	if len(b) < 2 {
		return 0
	}
	first, last := b[0].begin, b[len(b)-1].begin-1
	i, start := b.place(min(max(from, first), last))
	j, end := b.place(min(max(to, first), last))
	return float64(j-i) + end.whole - start.whole
}

// passes is how often the process came, between two times, past the place in its
// step where it was at a third, which lies between them.
func (b stepTimes) passes(at, from, to int64) (times int) {
	own, place := b.place(at)
	if own < 0 {
		return 0
	}
	for i := 0; i+1 < len(b); i++ {
		there := at
		if i != own {
			there = b.time(i, place)
		}
		if there >= from && there < to {
			times++
		}
	}
	return times
}

// whole reports whether a slice came at least once past each place in a step, of a
// process that made steps meanwhile.
func (b stepTimes) whole(on, off int64) (whole, stepping bool) {
	i, begin := b.place(on)
	j, _ := b.place(off - 1)
	switch {
	case i < 0 && j < 0:
		return false, false
	case i < 0 || j < 0:
		return false, true
	}
	return j > i+1 || j == i+1 && b.time(j, begin) <= off, true
}

// pace notes what tells where in its training step a process was, of calls that are
// recorded in every step.
func (d *decoder) pace(s *Span, f *catalog.Function) {
	switch {
	case s.DurationNS < 0:
	case f.Step:
		d.steps.saw(s.PID, s.StartNS, s.StartNS+s.DurationNS)
	case f.Text != catalog.NoText && strings.HasPrefix(s.Call.Name, "Optimizer."):
		d.steps.mark(s.PID, s.StartNS, s.StartNS+s.DurationNS)
	}
}
