package progress

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
		got := c.Between(millisecond(span.from), millisecond(span.to))
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
	if got := c.Between(millisecond(1600), millisecond(2400)); math.Abs(got-2400) > 3 {
		t.Errorf("%.1f nodes, want 800 and 1600", got)
	}
}

func TestANodeThatIsHandedOnIsNotNew(t *testing.T) {
	c := training([2]int64{1000, 1030}, [2]int64{3000, 3030})
	c.Saw(1, 7, 4000*int64(time.Millisecond), 12)
	if got := c.Between(millisecond(1000), millisecond(3000)); math.Abs(got-2000) > 2 {
		t.Errorf("%.1f nodes, want 2000", got)
	}
	if c.Read(millisecond(3500)) {
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
				clock.Tick(millisecond(ms))
			}
			got := clock.Between(millisecond(3030), millisecond(5030))
			if math.Abs(got-c.want) > 60 { // the reading before the last slice is up to 100 ms old
				t.Errorf("%.0f nodes, want %.0f", got, c.want)
			}
			if clock.Read(millisecond(5030)) || !clock.Read(millisecond(3030)) {
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
			c.Tick(time.Unix(0, at+tick*int64(CPUEvery)))
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
