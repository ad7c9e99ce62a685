package tracer

import (
	"math"
	"slices"
	"sync"
	"time"
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

// stepTimes are the moments at which a process's steps began, nanoseconds since
// the Unix epoch, in order. A step begins here where its backward pass does.
type stepTimes []int64

const (
	// keptSteps is how many steps of a process are kept, at the least, and
	// keptStepping of how many processes, at the most.
	keptSteps    = 4096
	keptStepping = 1024
	// recentSteps is over how many the length of a step is taken.
	recentSteps = 8
)

func newStepClock() *stepClock { return &stepClock{processes: map[int32]stepTimes{}} }

// saw notes a call of what a step calls once. One that lies inside another, a
// backward pass that starts a second one, is no step.
func (c *stepClock) saw(pid int32, start, end int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.processes[pid]
	if b == nil && len(c.processes) >= keptStepping {
		delete(c.processes, c.longestGone())
	}
	at, _ := slices.BinarySearch(b, start)
	inner := at // those that began later, but ended before
	for inner < len(b) && b[inner] < end {
		inner++
	}
	b = slices.Replace(b, at, inner, start)
	if len(b) > 2*keptSteps {
		b = slices.Delete(b, 0, len(b)-keptSteps)
	}
	c.processes[pid] = b
}

// longestGone is the process whose last step is the oldest.
func (c *stepClock) longestGone() (oldest int32) {
	last := int64(math.MaxInt64)
	for pid, b := range c.processes {
		if at := b[len(b)-1]; at < last {
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
		all[pid] = slices.Clone(b)
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
			length = max(length, time.Duration(b[i]-b[i-1]))
		}
	}
	return length
}

// around returns the steps between two times with what lies at both ends and was not
// seen: up to two steps before the first one, since a recording begins in the middle
// of one and its marks begin with backward passes, and two behind the last one, of
// which one is under way and the other may have just begun.
func (b stepTimes) around(from, to int64) stepTimes {
	if len(b) < 2 {
		return nil
	}
	first, _ := slices.BinarySearch(b, from)
	last, _ := slices.BinarySearch(b, to)
	within := slices.Clone(b[max(0, first-1):min(len(b), last+1)])
	if first == 0 {
		usual := b[1] - b[0]
		within = slices.Insert(within, 0, b[0]-2*usual, b[0]-usual)
	}
	if n := len(b); last == n {
		usual := b[n-1] - b[n-2]
		within = append(within, b[n-1]+usual, b[n-1]+2*usual)
	}
	return within
}

// place is where in the steps a time lies: in which, and how far into it, from 0
// to 1; -1 where it lies in none.
func (b stepTimes) place(at int64) (step int, share float64) {
	i, found := slices.BinarySearch(b, at)
	if !found {
		i--
	}
	if i < 0 || i+1 >= len(b) {
		return -1, 0
	}
	return i, float64(at-b[i]) / float64(b[i+1]-b[i])
}

// between is how many steps lie between two times, of those that are known.
func (b stepTimes) between(from, to int64) float64 {
	if len(b) < 2 {
		return 0
	}
	first, last := b[0], b[len(b)-1]-1
	i, start := b.place(min(max(from, first), last))
	j, end := b.place(min(max(to, first), last))
	return float64(j-i) + end - start
}

// passes is how often the process came, between two times, past the place in its
// step where it was at a third, which lies between them.
func (b stepTimes) passes(at, from, to int64) (times int) {
	own, share := b.place(at)
	if own < 0 {
		return 0
	}
	for i := 0; i+1 < len(b); i++ {
		there := at
		if i != own {
			there = b[i] + int64(math.Round(share*float64(b[i+1]-b[i])))
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
	j, end := b.place(off - 1)
	switch {
	case i < 0 && j < 0:
		return false, false
	case i < 0 || j < 0:
		return false, true
	}
	return j > i+1 || j == i+1 && end >= begin, true
}
