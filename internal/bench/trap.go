package main

import "fmt"

// trapGauge tells what a bare trap takes at the moment: the unit in which times of
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

// read is the median of some turns, ns a trap. The probe is there only meanwhile.
func (g *trapGauge) read() (float64, error) {
	remove, err := doNothing(g.trap, false)
	if err != nil {
		return 0, fmt.Errorf("attaching a program that does nothing: %w", err)
	}
	defer remove()
	var traps []float64
	for range gaugeTurns {
		bare, err := g.bare.once()
		if err != nil {
			return 0, err
		}
		trapped, err := g.trap.once()
		if err != nil {
			return 0, err
		}
		traps = append(traps, trapped-bare)
	}
	return median(traps), nil
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
	return fmt.Sprintf("%.2f µs, %.1f traps of %.2f µs (%.2f µs where one takes %.2f)", ns/1e3, ns/trap, trap/1e3, scaled(ns, trap)/1e3, trapWhenSet)
}

// scaled is what a time would be where a trap takes trapWhenSet.
func scaled(ns, trap float64) float64 { return ns / trap * 1e3 * trapWhenSet }

// verdictByTheTrap is the verdict as measured, or, on a machine that is slower now
// than the one that the target is from, by the trap.
func verdictByTheTrap(ns, trap, most float64) string {
	if ns > most && scaled(ns, trap) <= most {
		return "holds by the trap"
	}
	return verdict(ns <= most)
}
