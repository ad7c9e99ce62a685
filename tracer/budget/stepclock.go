package budget

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"
)

// StepClock tells where in its training step a process was. A step does different
// things one after the other: forward, backward, optimizer. A slice of two and a
// half steps sees some of that twice and some three times; weighed by its length
// alone, its rows would claim a fifth more calls of the one than of the other. So
// where what marks the steps is recorded all the time, each row of such a slice
// stands for as many calls as there were steps in the stretch, by how often the
// slice came past its place in the step.
//
// The decoder writes it, the Governor reads it.
type StepClock struct {
	mu        sync.Mutex
	processes map[int32]stepTimes
	asked     map[int32][]int64 // when each process asked its loader for more, in order
	since     int64             // what began before is not noted any more
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

// NewStepClock makes a StepClock that knows no step.
func NewStepClock() *StepClock {
	return &StepClock{processes: map[int32]stepTimes{}, asked: map[int32][]int64{}}
}

// after is the index of the first step that begins at a time or later.
func (b stepTimes) after(at int64) int {
	i, _ := slices.BinarySearchFunc(b, at, func(s step, at int64) int { return cmp.Compare(s.begin, at) })
	return i
}

// Saw notes a call of what a step calls once. One that lies inside another, a
// backward pass that starts a second one, is no step.
func (c *StepClock) Saw(pid int32, start, end int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if start < c.since {
		return
	}
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

// Mark notes both ends of something else that each step does.
func (c *StepClock) Mark(pid int32, start, end int64) {
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

// Load notes that a process asked its loader for the next batch.
func (c *StepClock) Load(pid int32, at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.asked[pid]
	if at < c.since || asked == nil && len(c.asked) >= keptStepping {
		return
	}
	where, _ := slices.BinarySearch(asked, at)
	if asked = slices.Insert(asked, where, at); len(asked) > 2*keptSteps {
		asked = slices.Delete(asked, 0, len(asked)-keptSteps)
	}
	c.asked[pid] = asked
}

// loads are the times of Load, the caller's.
func (c *StepClock) loads(pid int32) []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asked[pid])
}

// usual is the median length of the recent steps of the process with the most; 0 where
// none is known.
func (c *StepClock) usual() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var most stepTimes
	for _, b := range c.processes {
		if len(b) > len(most) {
			most = b
		}
	}
	if len(most) < 2 {
		return 0
	}
	length, _, _ := usualStep(most[max(0, len(most)-timelineSteps):])
	return time.Duration(length)
}

// longestGone is the process whose last step is the oldest.
func (c *StepClock) longestGone() (oldest int32) {
	last := int64(math.MaxInt64)
	for pid, b := range c.processes {
		if at := b[len(b)-1].begin; at < last {
			oldest, last = pid, at
		}
	}
	return oldest
}

// forget begins anew: from a time on, not every step is seen. The records of earlier ones
// may still be on their way: a handful of them would pass for all the steps there were.
func (c *StepClock) forget(at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = at
	clear(c.processes)
	clear(c.asked)
}

// steps are the times of each process's steps. They are the caller's.
func (c *StepClock) steps() map[int32]stepTimes {
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
func (c *StepClock) longest() (length time.Duration) {
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

// place is where in its step a process was: behind which mark, and how much of the
// way to the next one, from 0 to 1; and how much of the whole step.
type place struct {
	marks, behind int
	share, whole  float64
}

func share(at, from, to int64) float64 { return float64(at-from) / float64(max(1, to-from)) }
