package budget

import (
	"math"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/progress"
)

func testGovernor() *Governor {
	return New(Config{
		Probes: noProbes{}, Job: noJob{}, Switches: noSwitches{}, Nodes: progress.NewNodeClock(), Steps: progress.NewStepClock(),
		Warn: func(event.Warning) {},
	})
}

// ratio is what the rows of a slice stand for by its unit.
func ratio(g *Governor, i *interval, by unit, from, to sliceMark) float64 {
	recorded, represented := g.gauge.amounts(i, by, from, to)
	return represented / recorded
}

func TestWeightWithoutStepsIsTimed(t *testing.T) {
	at := time.Now()
	i := &interval{on: sliceMark{at: at}, off: sliceMark{at: at.Add(50 * time.Millisecond)}}
	g := testGovernor()
	if basis := g.gauge.basis(i); basis != unitTime {
		t.Errorf("weighed by unit %d, want time", basis)
	}
	if w := ratio(g, i, unitTime, sliceMark{at: at}, sliceMark{at: at.Add(time.Second)}); w != 20 {
		t.Errorf("weight %v, want 1 s over 50 ms", w)
	}
}

func TestNextSliceIsPaidForByItsCycle(t *testing.T) {
	at := time.Now()
	g := testGovernor()
	g.account.budget = 0.05
	g.on, g.off = sliceMark{at: at, steps: 0}, sliceMark{at: at.Add(100 * time.Millisecond), steps: 100}
	g.planNext(40*time.Millisecond, 10*time.Millisecond)
	// A second's budget is 50 ms; 10 are fixed, so 40 of hits at 0.4 a slice.
	if g.length != 100*time.Millisecond {
		t.Errorf("the next slice lasts %s, want 100ms", g.length)
	}
	g.planNext(40*time.Millisecond, 200*time.Millisecond)
	// The fixed cost alone is over: the slice grows to be worth it, the pause follows.
	if want := time.Second; g.length != want {
		t.Errorf("the next slice lasts %s, want %s", g.length, want)
	}
}

func TestWeightIsTheNodesOfTheStretchOverThoseCountedInTheSlice(t *testing.T) {
	at := time.Now()
	mark := func(ms int, nodes uint64) sliceMark {
		return sliceMark{at: at.Add(time.Duration(ms) * time.Millisecond), nodes: nodes, counted: true}
	}
	g := testGovernor()
	i := &interval{on: mark(0, 1000), off: mark(50, 1100)}
	if basis := g.gauge.basis(i); basis != unitCounted {
		t.Fatalf("weighed by unit %d, want counted nodes", basis)
	}
	if w := ratio(g, i, unitCounted, i.on, mark(9000, 6000)); w != 50 {
		t.Errorf("weight %v, want 5,000 nodes over 100, whatever the time", w)
	}
	if basis := g.gauge.basis(&interval{on: mark(0, 1000), off: mark(50, 1010)}); basis != unitTime {
		t.Errorf("ten nodes are weighed by unit %d, want by time", basis)
	}
	unknown := mark(50, 1100)
	unknown.counted = false
	if basis := g.gauge.basis(&interval{on: mark(0, 1000), off: unknown}); basis != unitTime {
		t.Errorf("a slice whose end nobody counted is weighed by unit %d, want by time", basis)
	}
}

// training is a thread that makes a node each millisecond, from the epoch on.
func training(slices ...[2]int64) *progress.NodeClock {
	c := progress.NewNodeClock()
	for epoch, s := range slices {
		for ms := s[0]; ms <= s[1]; ms++ {
			c.Saw(1, uint32(epoch), ms*int64(time.Millisecond), ms)
		}
	}
	return c
}

func millisecond(n int64) time.Time { return time.Unix(0, n*int64(time.Millisecond)) }

func TestWeightIsTheNodesOfTheStretchOverThoseOfTheSlice(t *testing.T) {
	g := testGovernor()
	g.gauge.nodes = training([2]int64{1000, 1050}, [2]int64{3000, 3050})
	s := &interval{epoch: 0, on: sliceMark{at: millisecond(1000)}, off: sliceMark{at: millisecond(1050)}}
	if w := ratio(g, s, unitNodes, s.on, sliceMark{at: millisecond(3000)}); math.Abs(w-2000.0/51) > 0.1 {
		t.Errorf("weight %v, want 2000 nodes over 51", w)
	}
}

// A slice in which the job made no nodes lies between two that did: what the line
// through those says of it is no count.
func TestASliceWithoutNodesIsNotWeighedByThem(t *testing.T) {
	g := testGovernor()
	g.gauge.nodes = training([2]int64{1000, 1050}, [2]int64{9000, 9050})
	quiet := &interval{epoch: 7, on: sliceMark{at: millisecond(5000)}, off: sliceMark{at: millisecond(5050)}}
	if basis := g.gauge.basis(quiet); basis != unitTime {
		t.Errorf("weighed by unit %d, want by time", basis)
	}
	if basis := g.gauge.basis(&interval{epoch: 1, on: sliceMark{at: millisecond(9000)}, off: sliceMark{at: millisecond(9050)}}); basis != unitNodes {
		t.Errorf("a slice with nodes is weighed by unit %d", basis)
	}
}
