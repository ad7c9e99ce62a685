package main

import "fmt"

// trapGauge tells what an empty uprobe takes at the moment: the unit in which times of
// probes and samplers travel from machine to machine, and from a slow minute of a
// shared one to a quick one.
type trapGauge struct{ bare, trap *launchJob }

const gaugeTurns = 50

func newTrapGauge() (*trapGauge, error) {
	g := &trapGauge{}
	for _, j := range []**launchJob{&g.bare, &g.trap} {
		var err error
		if *j, err = startOwnLaunches(); err != nil {
			g.end()
			return nil, err
		}
	}
	return g, nil
}

// read is the median and the least of some turns, ns a trap. The probe is there only meanwhile.
func (g *trapGauge) read() (usual, least float64, err error) {
	remove, err := doNothing(g.trap, false)
	if err != nil {
		return 0, 0, fmt.Errorf("attaching a program that does nothing: %w", err)
	}
	defer remove()
	var traps []float64
	for range gaugeTurns {
		bare, err := g.bare.once()
		if err != nil {
			return 0, 0, err
		}
		trapped, err := g.trap.once()
		if err != nil {
			return 0, 0, err
		}
		traps = append(traps, trapped-bare)
	}
	return median(traps), fastest(traps), nil
}

func (g *trapGauge) end() {
	for _, j := range []*launchJob{g.bare, g.trap} {
		if j != nil {
			j.end()
		}
	}
}

// byTheTrap words a time beside a target that was set where a trap took trapWhenSet:
// as it was measured, in traps, and what these come to there.
func byTheTrap(ns, trap float64) string {
	traps := ns / trap
	return fmt.Sprintf("%.2f µs, %.1f traps of %.2f µs (%.2f µs where one takes %.2f)", ns/1e3, traps, trap/1e3, traps*trapWhenSet, trapWhenSet)
}
