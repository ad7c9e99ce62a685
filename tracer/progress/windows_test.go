package progress

import (
	"math/rand/v2"
	"testing"
)

// jittered are steps of about 100 ns: a backward pass of 10, an optimizer, a forward pass
// that comes after a pause of any length; and when the calls of that are, 10 in each.
func jittered(steps int) (c *StepClock, calls [][]int64, end int64) {
	c = NewStepClock()
	random := rand.New(rand.NewPCG(3, 5))
	at := int64(1000)
	for range steps {
		c.Saw(1, at, at+10)
		c.Mark(1, at+12, at+20)
		pause := 20 + random.Int64N(60)
		forward := make([]int64, 10)
		for k := range forward {
			forward[k] = at + pause + int64(k)
		}
		calls = append(calls, forward)
		at += 100
	}
	return c, calls, at
}

// Steps that begin and end at a mark have each call of a step once. Between two of the same
// place in a step, which is told by time, a call at the edge falls into one step too many
// and is missing in the next, and the variance between steps counts it in both.
func TestAWholeStepHasEachOfItsCallsOnce(t *testing.T) {
	c, calls, end := jittered(60)
	line := c.Steps()[1].Timeline(1000, end)
	for on := int64(2030); on < 2130; on += 9 {
		windows := line.Windows(on, on+650)
		if len(windows) < 5 {
			t.Errorf("%d whole steps in a slice of 6.5 from %d on, want 5 at the least", len(windows), on)
		}
		seen := make([]int, len(windows)+1)
		for _, forward := range calls {
			for _, at := range forward {
				seen[WindowOf(windows, at)]++
			}
		}
		for i, n := range seen[1:] {
			if n != 10 {
				t.Errorf("a slice from %d on: its whole step %d has %d calls, want 10", on, i+1, n)
			}
		}
	}
	// As many whole steps as there may be: a slice of just two has two, at whatever mark.
	for on := int64(2000); on < 2100; on += 9 {
		if windows := line.Windows(on, on+201); len(windows) != 2 {
			t.Errorf("%d whole steps in a slice of two from %d on", len(windows), on)
		}
	}
}

func TestASliceCoversAStepOrNot(t *testing.T) {
	c := NewStepClock()
	for i := range int64(20) {
		c.Saw(1, 1000+100*i, 1010+100*i)
		c.Mark(1, 1012+100*i, 1020+100*i)
	}
	line := c.Steps()[1].Timeline(1000, 3000)
	for _, s := range []struct {
		on, off int64
		covers  bool
	}{{1500, 1601, true}, {1550, 1651, true}, {1550, 1640, false}, {1511, 1610, false}, {1550, 1950, true}} {
		if got := line.Covers(s.on, s.off); got != s.covers {
			t.Errorf("a slice from %d to %d covers a step: %v", s.on, s.off, got)
		}
	}
	if whole := line.Marked(1550, 1720); len(whole) != 1 || whole[0] != [2]int64{1600, 1700} {
		t.Errorf("the whole steps from 1550 to 1720 are %v", whole)
	}
	if whole := line.Marked(1450, 1550); len(whole) != 0 {
		t.Errorf("between 1450 and 1550 no mark comes twice, and the whole steps are %v", whole)
	}
}
