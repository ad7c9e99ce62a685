package weights

import (
	"math"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/progress"
)

// ratio is what the rows of a slice stand for by its unit.
func ratio(g *Gauge, i *interval, by unit, from, to Mark) float64 {
	recorded, represented := g.amounts(i, by, from, to)
	return represented / recorded
}

func TestWeightWithoutStepsIsTimed(t *testing.T) {
	at := time.Now()
	i := &interval{on: Mark{At: at}, off: Mark{At: at.Add(50 * time.Millisecond)}}
	g := testGauge(noProbes{})
	if basis := g.basis(i); basis != unitTime {
		t.Errorf("weighed by unit %d, want time", basis)
	}
	if w := ratio(g, i, unitTime, Mark{At: at}, Mark{At: at.Add(time.Second)}); w != 20 {
		t.Errorf("weight %v, want 1 s over 50 ms", w)
	}
}

func TestWeightIsTheNodesOfTheStretchOverThoseCountedInTheSlice(t *testing.T) {
	at := time.Now()
	mark := func(ms int, nodes uint64) Mark {
		return Mark{At: at.Add(time.Duration(ms) * time.Millisecond), Nodes: nodes, Counted: true}
	}
	g := testGauge(noProbes{})
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
	unknown.Counted = false
	if basis := g.basis(&interval{on: mark(0, 1000), off: unknown}); basis != unitTime {
		t.Errorf("a slice whose end was not counted is weighed by unit %d, want by time", basis)
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
	g := testGauge(noProbes{})
	g.Nodes = training([2]int64{1000, 1050}, [2]int64{3000, 3050})
	s := &interval{epoch: 0, on: Mark{At: millisecond(1000)}, off: Mark{At: millisecond(1050)}}
	if w := ratio(g, s, unitNodes, s.on, Mark{At: millisecond(3000)}); math.Abs(w-2000.0/51) > 0.1 {
		t.Errorf("weight %v, want 2000 nodes over 51", w)
	}
}

// A slice in which the job made no nodes lies between two that did: what the line
// through those says of it is no count.
func TestASliceWithoutNodesIsNotWeighedByThem(t *testing.T) {
	g := testGauge(noProbes{})
	g.Nodes = training([2]int64{1000, 1050}, [2]int64{9000, 9050})
	quiet := &interval{epoch: 7, on: Mark{At: millisecond(5000)}, off: Mark{At: millisecond(5050)}}
	if basis := g.basis(quiet); basis != unitTime {
		t.Errorf("weighed by unit %d, want by time", basis)
	}
	if basis := g.basis(&interval{epoch: 1, on: Mark{At: millisecond(9000)}, off: Mark{At: millisecond(9050)}}); basis != unitNodes {
		t.Errorf("a slice with nodes is weighed by unit %d", basis)
	}
}
