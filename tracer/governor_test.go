package tracer

import (
	"testing"
	"time"
)

func TestWeightIsTheStepsOfTheStretchOverThoseOfTheSlice(t *testing.T) {
	at := time.Now()
	s := &stretch{on: sliceMark{at: at, steps: 100}, off: sliceMark{at: at.Add(20 * time.Millisecond), steps: 120}}
	g := &governor{session: &Session{probes: &probeTable{}}, nodes: newNodeClock(), steps: newStepClock(), clock: newJobClock()}
	if w := g.weight(s, sliceMark{at: at, steps: 0}, sliceMark{at: at.Add(time.Second), steps: 500}); w != 25 {
		t.Errorf("weight %v, want 500 steps over 20", w)
	}
}

func TestWeightWithoutStepsIsTimed(t *testing.T) {
	at := time.Now()
	s := &stretch{on: sliceMark{at: at}, off: sliceMark{at: at.Add(50 * time.Millisecond)}}
	g := &governor{session: &Session{probes: &probeTable{}}, nodes: newNodeClock(), steps: newStepClock(), clock: newJobClock()}
	if w := g.weight(s, sliceMark{at: at}, sliceMark{at: at.Add(time.Second)}); w != 20 {
		t.Errorf("weight %v, want 1 s over 50 ms", w)
	}
}

func TestWeightIsNeverBelowOne(t *testing.T) {
	at := time.Now()
	s := &stretch{on: sliceMark{at: at}, off: sliceMark{at: at.Add(50 * time.Millisecond)}}
	g := &governor{session: &Session{probes: &probeTable{}}, nodes: newNodeClock(), steps: newStepClock(), clock: newJobClock()}
	if w := g.weight(s, sliceMark{at: at}, sliceMark{at: at.Add(10 * time.Millisecond)}); w != 1 {
		t.Errorf("weight %v, want 1", w)
	}
}

func TestNextSliceIsPaidForByItsCycle(t *testing.T) {
	at := time.Now()
	g := &governor{budget: 0.05, steps: newStepClock(), clock: newJobClock(), on: sliceMark{at: at, steps: 0}, off: sliceMark{at: at.Add(100 * time.Millisecond), steps: 100}}
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
	g := &governor{session: &Session{probes: &probeTable{}}, nodes: newNodeClock(), steps: newStepClock(), clock: newJobClock()}
	s := &stretch{on: mark(0, 1000), off: mark(50, 1100), from: mark(0, 1000)}
	if basis := g.basis(s); basis != unitCounted {
		t.Fatalf("weighed by unit %d, want counted nodes", basis)
	}
	if w := g.weight(s, s.from, mark(9000, 6000)); w != 50 {
		t.Errorf("weight %v, want 5,000 nodes over 100, whatever the time", w)
	}
	if basis := g.basis(&stretch{on: mark(0, 1000), off: mark(50, 1010)}); basis != unitTime {
		t.Errorf("ten nodes are weighed by unit %d, want by time", basis)
	}
	unknown := mark(50, 1100)
	unknown.counted = false
	if basis := g.basis(&stretch{on: mark(0, 1000), off: unknown}); basis != unitTime {
		t.Errorf("a slice whose end nobody counted is weighed by unit %d, want by time", basis)
	}
}
