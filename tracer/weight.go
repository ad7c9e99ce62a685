package tracer

import (
	"fmt"
	"time"
)

// How many calls a row of a slice stands for.

// unit is what slices are weighed by.
type unit uint8

const (
	unitSteps   unit = iota
	unitPhases       // steps, each place in them by itself
	unitCounted      // autograd nodes, read in the job's memory
	unitNodes        // autograd nodes, as the records tell them
	unitTime
)

// nodesCounted reports whether the nodes were counted at both marks, and are enough
// between them to weigh by.
func nodesCounted(from, to sliceMark) bool {
	return from.counted && to.counted && to.nodes >= from.nodes+weightNodes
}

// stretch is a slice that is over, and the bounds of what its rows stand for.
type stretch struct {
	epoch   uint32
	on, off sliceMark
	from    sliceMark // where the calls begin that it stands for
	seen    map[uint32]hits
	stall   time.Duration
	steps   map[int32]stepTimes // of each process where every step is recorded
	cut     *stretch            // a later slice within what this one stands for, whose rows stand for themselves
}

// basis is what a slice is weighed by.
func (g *governor) basis(s *stretch) unit {
	counted := s.off.steps - s.on.steps
	if g.countsSteps() && counted >= weightSteps {
		return unitSteps
	}
	if s.whole() {
		return unitPhases
	}
	if !g.manySteps(s) {
		return unitTime
	}
	if counted >= weightSteps { // calls of the reference
		return unitSteps
	}
	if nodesCounted(s.on, s.off) {
		return unitCounted
	}
	if g.nodes.seen(s.epoch) >= weightNodes {
		return unitNodes
	}
	return unitTime
}

// countsSteps reports whether what the marks count as steps are such, not the calls
// of an operator that stands in for them.
func (g *governor) countsSteps() bool {
	return g.reference == nil || g.reference.probe.planned.Function.Step
}

// manySteps reports whether a slice saw so many steps that it does not matter where
// in a step it began and ended. Nodes are made in the forward pass alone: those of a
// slice of a step and a half tell nothing of its backward passes. A job that is not
// known to make steps has none to be cut.
func (g *governor) manySteps(s *stretch) bool {
	steps, known := uint64(0), len(s.steps) > 0
	if g.countsSteps() {
		steps, known = s.off.steps-s.on.steps, known || s.off.steps > 0
	}
	for index, h := range s.seen {
		if g.session.probes.at(index).planned.Function.Step {
			steps, known = max(steps, h.recorded), known || h.recorded > 0
		}
	}
	return !known || steps >= weightSteps
}

// whole reports whether the slice saw at least one whole step of each process that
// made steps meanwhile, and all of them are known.
func (s *stretch) whole() bool {
	on, off := s.on.at.UnixNano(), s.off.at.UnixNano()
	any := false
	for _, steps := range s.steps {
		whole, stepping := steps.around(on, off).whole(on, off)
		if stepping && !whole {
			return false
		}
		any = any || stepping
	}
	return any
}

// present is the slice that has ended, with what is known of it now.
func (g *governor) present() *stretch {
	return &stretch{epoch: g.epoch - 1, on: g.on, off: g.off, from: g.cycleStart, seen: g.seen, steps: g.steps.steps()}
}

// closeStretch ends the stretch of the last slice, where the next one begins.
func (g *governor) closeStretch(now sliceMark) {
	g.last = g.present()
	g.last.stall = g.stall()
	g.cycleStart = now
}

// release lets the rows of the slice before the present one go, weighted for
// what lies between its stretch's beginning and to. It comes one slice late,
// so that a last slice which is cut short can leave its stretch to the one
// before it.
func (g *governor) release(to sliceMark) {
	s := g.last
	if s == nil {
		return
	}
	g.last = nil
	s.steps = g.steps.steps()
	weights := map[uint32]float64{}
	covered := map[uint32]time.Time{}
	for index := range s.seen {
		p := g.session.probes.at(index)
		weights[index], covered[index] = g.weight(s, p.covered, to), p.covered.at
		p.covered = to
	}
	typical := g.weight(s, s.from, to)
	byProbe := func(index uint32) float64 {
		if w, ok := weights[index]; ok {
			return w
		}
		return typical
	}
	weigh := func(r slicedRow) float64 { return byProbe(r.probe) }
	if g.basis(s) == unitPhases {
		phases := s.phases(to)
		weigh = func(r slicedRow) float64 {
			from, ok := covered[r.probe]
			if !ok {
				from = s.from.at
			}
			if w := phases.weight(r.pid, r.at, from.UnixNano()); w > 0 {
				return w
			}
			return byProbe(r.probe)
		}
	}
	g.session.do(func(d *decoder) {
		means := d.release(s.epoch, weigh)
		for index, h := range s.seen {
			mean, ok := means[index]
			if !ok {
				mean = weights[index]
			}
			g.session.probes.at(index).thinned += float64(h.recorded) * (mean - 1)
		}
	})
	g.session.warn(Warning{
		TSNS: s.on.at.UnixNano(), Kind: "slice", Source: "detail", Count: int64(len(s.seen)),
		Detail: fmt.Sprintf("%d probes recorded %.1f of %.1f ms, %s: a row stands for %.2f calls",
			len(s.seen), ms(s.off.at.Sub(s.on.at)), ms(to.at.Sub(s.from.at)), g.progress(s, to), typical),
	})
}

// slicedRow is a row that waits for its weight.
type slicedRow struct {
	probe uint32
	pid   int32
	at    int64 // nanoseconds since the Unix epoch
}

// phases weighs the rows of a slice by their places in their processes' steps.
type phases struct {
	steps       map[int32]stepTimes
	on, off, to int64
	cut         [2]int64 // what rows elsewhere stand for
}

func (s *stretch) phases(to sliceMark) phases {
	p := phases{steps: map[int32]stepTimes{}, on: s.on.at.UnixNano(), off: s.off.at.UnixNano(), to: to.at.UnixNano()}
	if s.cut != nil {
		p.cut = [2]int64{s.cut.on.at.UnixNano(), s.cut.off.at.UnixNano()}
	}
	for pid, steps := range s.steps {
		p.steps[pid] = steps.around(s.from.at.UnixNano(), p.to)
	}
	return p
}

// weight is how often the process came, from a time on, to where it was at another,
// over how often the slice saw it there; 0 where its steps are not known.
func (p phases) weight(pid int32, at, from int64) float64 {
	steps := p.steps[pid]
	seen := steps.passes(at, min(at, p.on), max(at+1, p.off))
	if seen == 0 {
		return 0
	}
	all := steps.passes(at, min(at, from), max(at+1, p.to)) - steps.passes(at, p.cut[0], p.cut[1])
	return max(1, float64(all)/float64(seen))
}

// stepsBetween is how many steps lie between two marks, in all processes.
func (s *stretch) stepsBetween(from, to sliceMark) (count float64) {
	for _, steps := range s.steps {
		count += steps.around(s.from.at.UnixNano(), to.at.UnixNano()).between(from.at.UnixNano(), to.at.UnixNano())
	}
	return count
}

// progress says what a slice was weighed by.
func (g *governor) progress(s *stretch, to sliceMark) string {
	nodes := g.nodes
	switch g.basis(s) {
	case unitPhases:
		return fmt.Sprintf("%.1f of %.1f steps, each place in a step by how often it was seen", s.stepsBetween(s.on, s.off), s.stepsBetween(s.from, to))
	case unitCounted:
		return fmt.Sprintf("%d of %d autograd nodes", s.off.nodes-s.on.nodes, to.nodes-s.from.nodes)
	case unitNodes:
		text := fmt.Sprintf("%.0f of %.0f autograd nodes", nodes.between(s.on.at, s.off.at), nodes.between(s.from.at, to.at))
		if !nodes.read(to.at) {
			text += " (those after the last slice are an estimate, by CPU time)"
		}
		return text
	case unitTime:
		return "too few steps to count, so weighted by time, an estimate"
	}
	of := "steps"
	if g.reference != nil {
		of = "calls of " + g.reference.probe.planned.Call.Name
	}
	return fmt.Sprintf("%d of %d %s", s.off.steps-s.on.steps, to.steps-s.from.steps, of)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// weight is how many calls each row of a slice stands for, of those
// between two marks: the steps between them over those in the slice, or the
// autograd nodes. Without either, time stands in for them, less what the probes
// themselves took of it.
func (g *governor) weight(s *stretch, from, to sliceMark) float64 {
	switch g.basis(s) {
	case unitSteps:
		if in, all := s.off.steps-s.on.steps, to.steps-from.steps; all >= in {
			return float64(all) / float64(in)
		}
	case unitPhases: // of a row that lies outside of what is known of the steps
		if in, all := s.stepsBetween(s.on, s.off), s.stepsBetween(from, to); in > 0 {
			return max(1, all/in)
		}
	case unitCounted:
		return max(1, float64(to.nodes-from.nodes)/float64(s.off.nodes-s.on.nodes))
	case unitNodes:
		nodes := g.nodes
		return max(1, nodes.between(from.at, to.at)/nodes.between(s.on.at, s.off.at))
	}
	// The estimate of the cost may exceed the slice on a job of nothing but calls.
	processes := time.Duration(g.session.busyProcesses())
	cost := min(g.price(s.seen, s.off.at.Sub(s.on.at)*processes)/processes, s.off.at.Sub(s.on.at)*3/4)
	inside, around := s.off.at.Sub(s.on.at)-cost, to.at.Sub(from.at)-cost-s.stall
	if inside <= 0 || around < inside {
		return 1
	}
	return float64(around) / float64(inside)
}

// finishWeights is called once every record has been read.
func (g *governor) finishWeights() {
	if !g.ended {
		g.release(g.mark())
		return
	}
	end := g.mark()
	last := g.present()
	if steps := g.off.steps - g.on.steps; g.last != nil && steps < weightSteps && g.basis(last) == unitTime {
		// Cut short: the slice before stands for this stretch too, and the few
		// rows of this one for themselves.
		end.steps, end.nodes = end.steps-steps, end.nodes-(g.off.nodes-g.on.nodes)
		g.last.cut = last
		g.release(end)
		epoch := g.epoch - 1
		g.session.do(func(d *decoder) { d.releaseAsIs(epoch) })
		return
	}
	g.release(g.cycleStart)
	g.closeStretch(end)
	g.release(end)
}
