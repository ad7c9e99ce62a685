package budget

import (
	"math"
	"testing"
	"time"
)

// training is a thread that makes a node each millisecond, from the epoch on.
func training(slices ...[2]int64) *NodeClock {
	c := NewNodeClock()
	for epoch, s := range slices {
		for ms := s[0]; ms <= s[1]; ms++ {
			c.Saw(1, uint32(epoch), ms*int64(time.Millisecond), ms)
		}
	}
	return c
}

func millisecond(n int64) time.Time { return time.Unix(0, n*int64(time.Millisecond)) }

func TestNodesBetweenSlices(t *testing.T) {
	c := training([2]int64{1000, 1030}, [2]int64{3000, 3030}, [2]int64{5000, 5030})
	for _, span := range []struct{ from, to, want int64 }{
		{1000, 3000, 2000},
		{1000, 1030, 30},
		{2000, 4000, 2000},
		{500, 1000, 500},    // before the first, at the pace of the first gap
		{-9000, 1000, 1000}, // no thread makes fewer than none
		{5000, 5500, 500},   // after the last, at the pace of the last gap
	} {
		got := c.between(millisecond(span.from), millisecond(span.to))
		if math.Abs(got-float64(span.want)) > 2 {
			t.Errorf("%d to %d ms: %.1f nodes, want %d", span.from, span.to, got, span.want)
		}
	}
}

func TestNodesOfAllThreadsAreAddedUp(t *testing.T) {
	c := training([2]int64{1000, 1030}, [2]int64{3000, 3030})
	for _, at := range []int64{1500, 2500} { // of another thread, two a millisecond
		c.Saw(2, uint32(at), at*int64(time.Millisecond), 2*at)
	}
	if got := c.between(millisecond(1600), millisecond(2400)); math.Abs(got-2400) > 3 {
		t.Errorf("%.1f nodes, want 800 and 1600", got)
	}
}

func TestANodeThatIsHandedOnIsNotNew(t *testing.T) {
	c := training([2]int64{1000, 1030}, [2]int64{3000, 3030})
	c.Saw(1, 7, 4000*int64(time.Millisecond), 12)
	if got := c.between(millisecond(1000), millisecond(3000)); math.Abs(got-2000) > 2 {
		t.Errorf("%.1f nodes, want 2000", got)
	}
	if c.read(millisecond(3500)) {
		t.Error("a number that is no news counts as a reading")
	}
}

// After the last slice the thread's CPU time stands in for the numbers.
func TestNodesAfterTheLastSliceAreThoseOfItsCPUTime(t *testing.T) {
	for _, c := range []struct {
		name string
		runs float64 // share of the time after the last slice
		want float64
	}{
		{"running", 1, 2000},
		{"half of the time", 0.5, 1000},
		{"waiting", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := training([2]int64{1000, 1030}, [2]int64{3000, 3030})
			for ms := int64(900); ms <= 5030; ms += 100 {
				clock.cpuTime = func(int32) (time.Duration, bool) {
					ran := float64(min(ms, 3030)) + c.runs*float64(max(0, ms-3030))
					return time.Duration(ran * float64(time.Millisecond)), true
				}
				clock.tick(millisecond(ms))
			}
			got := clock.between(millisecond(3030), millisecond(5030))
			if math.Abs(got-c.want) > 60 { // the reading before the last slice is up to 100 ms old
				t.Errorf("%.0f nodes, want %.0f", got, c.want)
			}
			if clock.read(millisecond(5030)) || !clock.read(millisecond(3030)) {
				t.Error("what is estimated is not told from what was read")
			}
		})
	}
}

func TestTheClockForgetsWhatItNeedsNoMore(t *testing.T) {
	c := NewNodeClock()
	c.cpuTime = func(int32) (time.Duration, bool) { return 0, true }
	for epoch := range int64(10 * keptReadings) {
		at := epoch * int64(time.Second)
		c.Saw(1, uint32(epoch), at, epoch)
		for tick := range int64(10) {
			c.tick(time.Unix(0, at+tick*int64(cpuEvery)))
		}
	}
	thread := c.threads[1]
	if len(thread.slices) > keptReadings || len(thread.cpu) > 40 {
		t.Errorf("%d slices and %d readings of the CPU time are kept", len(thread.slices), len(thread.cpu))
	}
	for tid := range int32(2 * clockThreads) {
		c.Saw(tid, 1, 1, 1)
	}
	if len(c.threads) > clockThreads {
		t.Errorf("%d threads are followed", len(c.threads))
	}
}

func TestWeightIsTheNodesOfTheStretchOverThoseOfTheSlice(t *testing.T) {
	g := &Governor{probes: noProbes{}, job: noJob{}, nodes: training([2]int64{1000, 1050}, [2]int64{3000, 3050}), steps: NewStepClock()}
	s := &interval{epoch: 0, on: sliceMark{at: millisecond(1000)}, off: sliceMark{at: millisecond(1050)}}
	if w := ratio(g, s, unitNodes, s.on, sliceMark{at: millisecond(3000)}); math.Abs(w-2000.0/51) > 0.1 {
		t.Errorf("weight %v, want 2000 nodes over 51", w)
	}
}

func TestTheThreadsOwnCPUTime(t *testing.T) {
	if _, ok := threadCPUTime(1); !ok {
		t.Skip("this kernel keeps no schedstat")
	}
	if _, ok := threadCPUTime(-1); ok {
		t.Error("a thread that is none has a CPU time")
	}
}

// A slice in which the job made no nodes lies between two that did: what the line
// through those says of it is no count.
func TestASliceWithoutNodesIsNotWeighedByThem(t *testing.T) {
	g := &Governor{probes: noProbes{}, job: noJob{}, nodes: training([2]int64{1000, 1050}, [2]int64{9000, 9050}), steps: NewStepClock()}
	quiet := &interval{epoch: 7, on: sliceMark{at: millisecond(5000)}, off: sliceMark{at: millisecond(5050)}}
	if basis := g.basis(quiet); basis != unitTime {
		t.Errorf("weighed by unit %d, want by time", basis)
	}
	if basis := g.basis(&interval{epoch: 1, on: sliceMark{at: millisecond(9000)}, off: sliceMark{at: millisecond(9050)}}); basis != unitNodes {
		t.Errorf("a slice with nodes is weighed by unit %d", basis)
	}
}
