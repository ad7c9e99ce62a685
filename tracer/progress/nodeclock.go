package progress

import (
	"slices"
	"sync"
	"time"
)

// NodeClock tells how far a training job has come without a probe of its own.
// PyTorch numbers the autograd nodes that a thread makes, one after the other
// (at::sequence_number::get_and_increment), and a slice that records operators
// sees those numbers: what they grew by between two slices is what the job did
// while nothing was probed. A step makes the same number of nodes each time, so
// slices can be weighed by nodes as by steps.
//
// After the last slice the numbers are not read; there the thread's CPU time
// says how far it came, at the nodes a CPU second of the last gap between slices.
//
// The decoder writes it, the Governor reads it.
type NodeClock struct {
	mu      sync.Mutex
	threads map[int32]*threadNodes
	cpuTime func(tid int32) (time.Duration, bool) // a test's own
}

// threadNodes is what is known of one thread's numbering: a first and a last
// reading for each slice in which it made nodes, oldest first.
type threadNodes struct {
	highest int64
	slices  []nodeReading
	cpu     []cpuReading // since the last but one slice
}

// nodeReading is what one slice saw of a thread.
type nodeReading struct {
	epoch       uint32
	first, last nodePoint
}

// nodePoint is the number of nodes that a thread had made at a time.
type nodePoint struct {
	at    int64 // nanoseconds since the Unix epoch
	nodes int64
}

// cpuReading is the CPU time that a thread had used at a time.
type cpuReading struct {
	at, used int64 // nanoseconds
}

const (
	// keptReadings is how many slices back the clock is read, at most, and
	// keptCPU how many readings of the CPU time are kept in a pause.
	keptReadings = 256
	keptCPU      = 512
	// clockThreads bounds how many threads it follows.
	clockThreads = 4096
	// CPUEvery is how often the CPU time is read, at the least, and for how long a
	// thread is taken to have gone on as before after the last reading.
	CPUEvery = 500 * time.Millisecond
)

// NewNodeClock makes a NodeClock that knows no thread.
func NewNodeClock() *NodeClock {
	return &NodeClock{threads: map[int32]*threadNodes{}, cpuTime: new(schedstats).ran}
}

// Saw notes that a thread made a node at a time, in a slice.
func (c *NodeClock) Saw(tid int32, epoch uint32, at, number int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.threads[tid]
	if t == nil {
		if len(c.threads) >= clockThreads {
			clear(c.threads) // threads come and go by the thousand: begin anew
		}
		t = &threadNodes{highest: -1}
		c.threads[tid] = t
	}
	// An operator may hand on a node that was made long ago.
	if number <= t.highest {
		return
	}
	t.highest = number
	if n := len(t.slices); n == 0 || t.slices[n-1].epoch != epoch {
		if n >= keptReadings {
			t.slices = slices.Delete(t.slices, 0, 1)
		}
		// This one was made just now: so many were there before it.
		t.slices = append(t.slices, nodeReading{epoch: epoch, first: nodePoint{at, number}})
	}
	t.slices[len(t.slices)-1].last = nodePoint{at, number + 1}
}

// Tick reads the CPU times, if that is due.
func (c *NodeClock) Tick(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for tid, t := range c.threads {
		if n := len(t.cpu); n > 0 && now.UnixNano()-t.cpu[n-1].at < int64(CPUEvery)/2 {
			continue
		}
		used, ok := c.cpuTime(tid)
		if !ok {
			continue
		}
		t.cpu = append(t.cpu, cpuReading{now.UnixNano(), int64(used)})
		old := len(t.cpu) - keptCPU
		if n := len(t.slices); n > 1 {
			begin := t.slices[n-2].last.at
			// The last one before the gap is of use, those before it are not.
			old = max(old, slices.IndexFunc(t.cpu, func(r cpuReading) bool { return r.at > begin })-1)
		}
		if old > 0 {
			t.cpu = slices.Delete(t.cpu, 0, old)
		}
	}
}

// Between is how many nodes all threads made between two times.
func (c *NodeClock) Between(from, to time.Time) (nodes float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.threads {
		nodes += max(0, t.made(to.UnixNano())-t.made(from.UnixNano()))
	}
	return nodes
}

// Seen is how many nodes the records of one slice told of. What Between says of a
// slice that told of none is a guess by those around it.
func (c *NodeClock) Seen(epoch uint32) (nodes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.threads {
		for _, s := range t.slices {
			if s.epoch == epoch {
				nodes += s.last.nodes - s.first.nodes
			}
		}
	}
	return nodes
}

// Read reports whether a slice read the numbers at that time or later.
func (c *NodeClock) Read(at time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.threads {
		if n := len(t.slices); n > 0 && t.slices[n-1].last.at >= at.UnixNano() {
			return true
		}
	}
	return false
}

// made is how many nodes the thread had made at a time: between two readings on
// the line through them, before the first at the pace of the first gap between
// slices, where no probe slowed it, and after the last at that of the last.
func (t *threadNodes) made(at int64) float64 {
	before, after := t.points(at)
	switch {
	case before == nil && after == nil:
		return 0
	case before == nil:
		from, to := t.gap(0)
		return max(0, float64(after.nodes)-pace(from, to)*float64(after.at-at))
	case after == nil:
		return float64(before.nodes) + t.afterLast(before.at, at)
	case after.at == before.at:
		return float64(before.nodes)
	}
	share := float64(at-before.at) / float64(after.at-before.at)
	return float64(before.nodes) + share*float64(after.nodes-before.nodes)
}

// afterLast estimates the nodes made since the last reading.
func (t *threadNodes) afterLast(last, at int64) float64 {
	from, to := t.gap(len(t.slices) - 2)
	used, known := t.used(last, at)
	inGap, gapKnown := t.used(from.at, to.at)
	if !known || !gapKnown || inGap <= 0 {
		return pace(from, to) * float64(at-last)
	}
	return float64(to.nodes-from.nodes) / inGap * used
}

// points are the last reading at or before a time and the first after it.
func (t *threadNodes) points(at int64) (before, after *nodePoint) {
	for i := range t.slices {
		for _, p := range []*nodePoint{&t.slices[i].first, &t.slices[i].last} {
			if p.at > at {
				return before, p
			}
			before = p
		}
	}
	return before, nil
}

// gap is what lies between a slice and the one after it; the slice itself where
// there is only one.
func (t *threadNodes) gap(slice int) (from, to nodePoint) {
	if len(t.slices) == 1 {
		return t.slices[0].first, t.slices[0].last
	}
	return t.slices[slice].last, t.slices[slice+1].first
}

// pace is the number of nodes a nanosecond between two points.
func pace(from, to nodePoint) float64 {
	if to.at <= from.at {
		return 0
	}
	return float64(to.nodes-from.nodes) / float64(to.at-from.at)
}

// used is the CPU time that the thread used between two times, nanoseconds, if
// it was read around them.
func (t *threadNodes) used(from, to int64) (nanoseconds float64, known bool) {
	if len(t.cpu) < 2 || from < t.cpu[0].at-int64(CPUEvery) {
		return 0, false
	}
	return t.usedAt(to) - t.usedAt(from), true
}

// usedAt is the CPU time that the thread had used at a time, on the line through
// the readings around it. The line goes on for a little behind the last one: the
// thread may be gone when the next would be due.
func (t *threadNodes) usedAt(at int64) float64 {
	i, _ := slices.BinarySearchFunc(t.cpu, at, func(r cpuReading, at int64) int {
		if r.at <= at {
			return -1
		}
		return 1
	})
	i = min(max(i, 1), len(t.cpu)-1)
	a, b := t.cpu[i-1], t.cpu[i]
	at = min(at, b.at+int64(CPUEvery))
	if b.at == a.at {
		return float64(a.used)
	}
	return float64(a.used) + float64(b.used-a.used)*float64(at-a.at)/float64(b.at-a.at)
}
