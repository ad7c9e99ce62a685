package tracer

import (
	"fmt"
	"time"
)

// How many calls a row of a slice stands for.

// done is how far the job came between two marks: in steps, or else in autograd
// nodes, as far as the decoder has read.
func (g *governor) done(from, to sliceMark) (count float64, in unit) {
	if to.steps > from.steps {
		return float64(to.steps - from.steps), unitSteps
	}
	if nodesCounted(from, to) {
		return float64(to.nodes - from.nodes), unitCounted
	}
	return g.nodes.between(from.at, to.at), unitNodes
}

// nodesCounted reports whether the nodes were counted at both marks, and are enough
// between them to weigh by.
func nodesCounted(from, to sliceMark) bool {
	return from.counted && to.counted && to.nodes >= from.nodes+weightNodes
}

// unit is what slices are weighed by.
type unit uint8

const (
	unitSteps   unit = iota
	unitCounted      // autograd nodes, read in the job's memory
	unitNodes        // autograd nodes, as the records tell them
	unitTime
)

// basis is what a slice is weighed by.
func (g *governor) basis(s *stretch) unit {
	if s.off.steps-s.on.steps >= weightSteps {
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

// stretch is a slice that is over, and the bounds of what its rows stand for.
type stretch struct {
	epoch   uint32
	on, off sliceMark
	from    sliceMark // where the calls begin that it stands for
	seen    map[uint32]hits
	stall   time.Duration
}

// closeStretch ends the stretch of the last slice, where the next one begins.
func (g *governor) closeStretch(now sliceMark) {
	g.last = &stretch{epoch: g.epoch - 1, on: g.on, off: g.off, from: g.cycleStart, seen: g.seen, stall: g.stall()}
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
	weights := map[uint32]float64{}
	for index, h := range s.seen {
		p := g.session.probes.at(index)
		weights[index] = g.weight(s, p.covered, to)
		p.covered = to
		p.thinned += float64(h.recorded) * (weights[index] - 1)
	}
	typical := g.weight(s, s.from, to)
	g.session.do(func(d *decoder) {
		d.release(s.epoch, func(index uint32) float64 {
			if w, ok := weights[index]; ok {
				return w
			}
			return typical
		})
	})
	g.session.warn(Warning{
		TSNS: s.on.at.UnixNano(), Kind: "slice", Source: "detail", Count: int64(len(s.seen)),
		Detail: fmt.Sprintf("%d probes recorded %.1f of %.1f ms, %s: a row stands for %.2f calls",
			len(s.seen), ms(s.off.at.Sub(s.on.at)), ms(to.at.Sub(s.from.at)), g.progress(s, to), typical),
	})
}

// progress says what a slice was weighed by.
func (g *governor) progress(s *stretch, to sliceMark) string {
	nodes := g.nodes
	switch g.basis(s) {
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
	last := &stretch{epoch: g.epoch - 1, on: g.on, off: g.off}
	if steps := g.off.steps - g.on.steps; g.last != nil && steps < weightSteps && g.basis(last) == unitTime {
		// Cut short: the slice before stands for this stretch too, and the few
		// rows of this one for themselves.
		end.steps, end.nodes = end.steps-steps, end.nodes-(g.off.nodes-g.on.nodes)
		g.release(end)
		epoch := g.epoch - 1
		g.session.do(func(d *decoder) { d.release(epoch, func(uint32) float64 { return 1 }) })
		return
	}
	g.release(g.cycleStart)
	g.closeStretch(end)
	g.release(end)
}
