package budget

import (
	"testing"
	"time"
)

func testGovernor() *Governor {
	return &Governor{probes: noProbes{}, job: noJob{}, nodes: NewNodeClock(), steps: NewStepClock(), clock: newJobClock(), ledger: newLedger()}
}

// ratio is what the rows of a slice stand for by its unit.
func ratio(g *Governor, i *interval, by unit, from, to sliceMark) float64 {
	recorded, represented := g.amounts(i, by, from, to)
	return represented / recorded
}

func TestWeightWithoutStepsIsTimed(t *testing.T) {
	at := time.Now()
	i := &interval{on: sliceMark{at: at}, off: sliceMark{at: at.Add(50 * time.Millisecond)}}
	g := testGovernor()
	if basis := g.basis(i); basis != unitTime {
		t.Errorf("weighed by unit %d, want time", basis)
	}
	if w := ratio(g, i, unitTime, sliceMark{at: at}, sliceMark{at: at.Add(time.Second)}); w != 20 {
		t.Errorf("weight %v, want 1 s over 50 ms", w)
	}
}

func TestNextSliceIsPaidForByItsCycle(t *testing.T) {
	at := time.Now()
	g := &Governor{budget: 0.05, steps: NewStepClock(), clock: newJobClock(), on: sliceMark{at: at, steps: 0}, off: sliceMark{at: at.Add(100 * time.Millisecond), steps: 100}}
	g.planNext(40*time.Millisecond, 10*time.Millisecond)
	// A second's budget is 50 ms; 10 are fixed, so 40 of hits at 0.4 a slice.
	if g.onTime != 100*time.Millisecond {
		t.Errorf("the next slice lasts %s, want 100ms", g.onTime)
	}
	g.planNext(40*time.Millisecond, 200*time.Millisecond)
	// The fixed cost alone is over: the slice grows to be worth it, the pause follows.
	if want := time.Second; g.onTime != want {
		t.Errorf("the next slice lasts %s, want %s", g.onTime, want)
	}
}

func TestWeightIsTheNodesOfTheStretchOverThoseCountedInTheSlice(t *testing.T) {
	at := time.Now()
	mark := func(ms int, nodes uint64) sliceMark {
		return sliceMark{at: at.Add(time.Duration(ms) * time.Millisecond), nodes: nodes, counted: true}
	}
	g := testGovernor()
	i := &interval{on: mark(0, 1000), off: mark(50, 1100)}
	if basis := g.basis(i); basis != unitCounted {
		t.Fatalf("weighed by unit %d, want counted nodes", basis)
	}
	if w := ratio(g, i, unitCounted, i.on, mark(9000, 6000)); w != 50 {
		t.Errorf("weight %v, want 5,000 nodes over 100, whatever the time", w)
	}
	if basis := g.basis(&interval{on: mark(0, 1000), off: mark(50, 1010)}); basis != unitTime {
		t.Errorf("ten nodes are weighed by unit %d, want by time", basis)
	}
	unknown := mark(50, 1100)
	unknown.counted = false
	if basis := g.basis(&interval{on: mark(0, 1000), off: unknown}); basis != unitTime {
		t.Errorf("a slice whose end nobody counted is weighed by unit %d, want by time", basis)
	}
}
