package graph

import (
	"maps"
	"math"
)

// Times are what a replay keeps of the nodes, one value a node.
type Times struct {
	Delay []float64 // from the latest dependency's end (from 0 without one) to the start
	Own   []float64 // from the start, or the latest of what it waited for, to the end
	// Free are nodes that wait for nothing while they run: the wait is what is
	// replaced. Nil is none.
	Free map[int]bool
}

// Clone is for a replay that replaces some of them.
func (t Times) Clone() Times {
	return Times{append([]float64(nil), t.Delay...), append([]float64(nil), t.Own...), maps.Clone(t.Free)}
}

// Run is the outcome of a replay, one value a node.
type Run struct{ Start, End []float64 }

// Measured are the times that give back the measured starts and ends.
func (g *Graph) Measured() Times {
	n := len(g.nodes)
	t := Times{Delay: make([]float64, n), Own: make([]float64, n)}
	begun := make([]float64, len(g.groups))
	for k, members := range g.groups {
		begun[k] = math.Inf(-1)
		for _, m := range members {
			begun[k] = max(begun[k], g.nodes[m].Start)
		}
	}
	for v := range int32(n) {
		node := g.nodes[v]
		ready, held := 0.0, node.Start
		for i, d := range g.after.of(v) {
			if end := g.nodes[d].End; i == 0 || end > ready {
				ready = end
			}
		}
		for _, d := range g.waits.of(v) {
			held = max(held, g.nodes[d].End)
		}
		if k := g.member[v]; k >= 0 {
			held = max(held, begun[k])
		}
		t.Delay[v], t.Own[v] = node.Start-ready, node.End-held
	}
	return t
}

// Replay runs the graph with the given times.
func (g *Graph) Replay(t Times) Run {
	n := len(g.nodes)
	run := Run{make([]float64, n), make([]float64, n)}
	g.replay(t, run)
	return run
}

func (g *Graph) replay(t Times, run Run) {
	n := int32(len(g.nodes))
	begun := make([]float64, len(g.groups))
	for _, e := range g.order {
		switch {
		case e < n:
			ready := 0.0
			for i, d := range g.after.of(e) {
				if end := run.End[d]; i == 0 || end > ready {
					ready = end
				}
			}
			run.Start[e] = ready + t.Delay[e]
		case e < 2*n:
			v := e - n
			held := run.Start[v]
			for _, d := range g.waits.of(v) {
				if !t.Free[int(v)] {
					held = max(held, run.End[d])
				}
			}
			if k := g.member[v]; k >= 0 {
				held = max(held, begun[k])
			}
			run.End[v] = held + t.Own[v]
		default:
			k := e - 2*n
			begun[k] = math.Inf(-1)
			for _, m := range g.groups[k] {
				begun[k] = max(begun[k], run.Start[m])
			}
		}
	}
}

// Last is when the last node of the run ends; 0 without nodes.
func (r Run) Last() float64 {
	if len(r.End) == 0 {
		return 0
	}
	last := r.End[0]
	for _, end := range r.End {
		last = max(last, end)
	}
	return last
}
