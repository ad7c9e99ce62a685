package loop

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
)

// Gauge tells what an empty uprobe takes at the moment: the unit in which times of
// probes and samplers travel from machine to machine, and from a slow minute of a
// shared one to a quick one.
type Gauge struct{ bare, trap *Loop }

// TrapWhenSet is what an empty uprobe took, µs, on the machine that the targets are from.
const TrapWhenSet = 0.53

const gaugeTurns = 50

func NewGauge() (*Gauge, error) {
	g := &Gauge{}
	for _, j := range []**Loop{&g.bare, &g.trap} {
		var err error
		if *j, err = StartOwn(); err != nil {
			g.End()
			return nil, err
		}
	}
	return g, nil
}

// Read is the median and the least of some turns, ns a trap. The probe is there only meanwhile.
func (g *Gauge) Read() (usual, least float64, err error) {
	remove, err := AttachEmpty(g.trap, false)
	if err != nil {
		return 0, 0, fmt.Errorf("attaching a program that does nothing: %w", err)
	}
	defer remove()
	var traps []float64
	for range gaugeTurns {
		bare, err := g.bare.Once()
		if err != nil {
			return 0, 0, err
		}
		trapped, err := g.trap.Once()
		if err != nil {
			return 0, 0, err
		}
		traps = append(traps, trapped-bare)
	}
	return figure.Median(traps), figure.Fastest(traps), nil
}

func (g *Gauge) End() {
	for _, j := range []*Loop{g.bare, g.trap} {
		if j != nil {
			j.End()
		}
	}
}

// InTraps words a time beside a target that was set where a trap took trapWhenSet:
// as it was measured, in traps, and what these come to there.
func InTraps(ns, trap float64) string {
	traps := ns / trap
	return fmt.Sprintf("%.2f µs, %.1f traps of %.2f µs (%.2f µs where one takes %.2f)", ns/1e3, traps, trap/1e3, traps*TrapWhenSet,
		TrapWhenSet)
}
