package progress

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
// slice came past its position in the step.
//
// The decoder writes it, the Governor reads it.
type StepClock struct {
	mu        sync.Mutex
	processes map[int32]*Stepping
	since     int64 // what began before is not noted any more
}

// Stepping is what is known of one process.
type Stepping struct {
	steps stepTimes
	loads []int64 // when it asked its loader for more, in order
	// known is from when on that is all there was: what was before was let go. 0 where
	// nothing was. What was before needed may be let go.
	known, needed int64
	ended         int64 // when the process has, 0: it has not
}

// Count is how many of its steps are known.
func (p Stepping) Count() int { return len(p.steps) }

// Since reports whether all its steps since a time are known, two of them at the least.
func (p Stepping) Since(from int64) bool { return len(p.steps) >= 2 && p.known <= from }

// Timeline is what the process did between two times, as far as it is known.
func (p Stepping) Timeline(from, to int64) *Timeline {
	if p.ended > 0 {
		to = max(from, min(to, p.ended))
	}
	return newTimeline(p.steps, p.loads, max(from, p.known), to)
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
	// keptSteps is how many steps of a process are kept that are not needed any more,
	// mostSteps how many of all processes, needed or not, and keptStepping of how many
	// processes, at the most. A slice may wait for its weights for half a minute and
	// more, and steps may last for less than half a millisecond.
	keptSteps    = 1024
	mostSteps    = 1 << 18
	keptStepping = 1024
	// mostMarks bounds those of a step.
	mostMarks = 32
	// recentSteps is over how many the length of a step is taken.
	recentSteps = 8
)

// NewStepClock makes a StepClock that knows no step.
func NewStepClock() *StepClock { return &StepClock{processes: map[int32]*Stepping{}} }

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
	p := c.of(pid)
	if p.ended > 0 && start > p.ended { // another process has its number
		*p = Stepping{}
	}
	first := p.steps.after(start)
	p.steps = slices.Replace(p.steps, first, p.steps.after(end), step{begin: start, marks: []int64{end}})
	c.trim(p)
}

// of is what is known of a process, which may be new.
func (c *StepClock) of(pid int32) *Stepping {
	p := c.processes[pid]
	if p == nil {
		if len(c.processes) >= keptStepping {
			delete(c.processes, c.longestGone())
		}
		p = &Stepping{}
		c.processes[pid] = p
	}
	return p
}

// room is how many steps of each process there is room for.
func (c *StepClock) room() int { return mostSteps / max(1, len(c.processes)) }

// trim lets go of what is not needed, and beyond that of what there is no room for. It
// does so seldom, of much at once.
func (c *StepClock) trim(p *Stepping) {
	room := c.room()
	least := max(min(keptSteps, room/2), timelineSteps)
	if n := len(p.steps); n > 2*least {
		gone := min(p.steps.after(p.needed), n-least)
		if n > room {
			gone = max(gone, n-room+room/8)
		}
		if gone >= least || n > room {
			p.steps = slices.Delete(p.steps, 0, gone)
			p.known = p.steps[0].begin
		}
	}
	if n := len(p.loads); n > 2*least {
		from := max(p.needed, p.known)
		if n > room {
			from = max(from, p.loads[n-room+room/8])
		}
		if gone, _ := slices.BinarySearch(p.loads, from); gone >= least || n > room {
			p.loads = slices.Delete(p.loads, 0, gone)
		}
	}
}

// Need says from when on the steps of a process are still needed.
func (c *StepClock) Need(pid int32, from int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.processes[pid]; p != nil {
		p.needed = max(p.needed, from)
	}
}

// Crowded reports whether the steps of some process take more than half of their room.
func (c *StepClock) Crowded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	room := c.room()
	for _, p := range c.processes {
		if max(len(p.steps), len(p.loads)) > room/2 {
			return true
		}
	}
	return false
}

// Mark notes both ends of something else that each step does.
func (c *StepClock) Mark(pid int32, start, end int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.processes[pid]
	if p == nil {
		return
	}
	for _, at := range []int64{start, end} {
		i := p.steps.after(at+1) - 1
		if i < 0 || len(p.steps[i].marks) >= mostMarks {
			continue
		}
		where, _ := slices.BinarySearch(p.steps[i].marks, at)
		p.steps[i].marks = slices.Insert(p.steps[i].marks, where, at)
	}
}

// Ended notes that a process has ended: it did nothing after that.
func (c *StepClock) Ended(pid int32, at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.processes[pid]; p != nil {
		p.ended = at
	}
}

// Load notes that a process asked its loader for the next batch.
func (c *StepClock) Load(pid int32, at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at < c.since {
		return
	}
	p := c.of(pid)
	where, _ := slices.BinarySearch(p.loads, at)
	p.loads = slices.Insert(p.loads, where, at)
	c.trim(p)
}

// Usual is the median length of the recent steps of the process with the most; 0 where
// none is known.
func (c *StepClock) Usual() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var most stepTimes
	for _, p := range c.processes {
		if len(p.steps) > len(most) {
			most = p.steps
		}
	}
	if len(most) < 2 {
		return 0
	}
	length, _, _ := usualStep(most[max(0, len(most)-timelineSteps):])
	return time.Duration(length)
}

// longestGone is the process of which nothing was heard for the longest time.
func (c *StepClock) longestGone() (oldest int32) {
	last := int64(math.MaxInt64)
	for pid, p := range c.processes {
		at := int64(0)
		if n := len(p.steps); n > 0 {
			at = p.steps[n-1].begin
		}
		if n := len(p.loads); n > 0 {
			at = max(at, p.loads[n-1])
		}
		if at < last {
			oldest, last = pid, at
		}
	}
	return oldest
}

// Forget begins anew: from a time on, not every step is seen. The records of earlier ones
// may still be on their way: a handful of them would pass for all the steps there were.
func (c *StepClock) Forget(at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = max(c.since, at)
	clear(c.processes)
}

// Steps are the times of each process with steps. They are the caller's.
func (c *StepClock) Steps() map[int32]Stepping {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[int32]Stepping, len(c.processes))
	for pid, p := range c.processes {
		if len(p.steps) == 0 {
			continue
		}
		marks := 0
		for i := range p.steps {
			marks += len(p.steps[i].marks)
		}
		copied, store := slices.Clone(p.steps), make([]int64, 0, marks)
		for i := range copied {
			from := len(store)
			store = append(store, copied[i].marks...)
			copied[i].marks = store[from:len(store):len(store)]
		}
		all[pid] = Stepping{copied, slices.Clone(p.loads), p.known, p.needed, p.ended}
	}
	return all
}

// Longest is how long the longest of the recent steps of any process was; 0 where
// none is known.
func (c *StepClock) Longest() (length time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.processes {
		b := p.steps
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

// position is where in its step a process was: behind which mark, and how much of the
// way to the next one, from 0 to 1; and how much of the whole step.
type position struct {
	marks, behind int
	share, whole  float64
}

func share(at, from, to int64) float64 { return float64(at-from) / float64(max(1, to-from)) }
