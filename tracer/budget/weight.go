package budget

import (
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/progress"
)

// What a slice is weighed by where the steps of a process are not known.

// weightNodes is the least number of nodes in a slice by which it is weighed.
const weightNodes = 32

// gauge tells how far the job has come between two moments.
type gauge struct {
	*joints
	nodes     *progress.NodeClock   // what tells their number where nobody reads it
	steps     *progress.StepClock   // where in its step each process was
	counter   *progress.NodeCounter // reads the number of nodes; nil where it can't
	reference *reference            // what is counted where there are neither steps nor nodes
}

// mark is now.
func (g *gauge) mark() sliceMark {
	m := sliceMark{at: time.Now(), steps: g.probes.PastSteps()}
	for _, index := range g.probes.Steps() {
		if calls, ok := g.probes.Calls(index); ok {
			m.steps += calls
		}
	}
	if g.reference != nil {
		if calls, ok := g.reference.counting.Calls(); ok {
			m.steps = g.reference.base + calls
		}
	}
	g.nodes.Tick(m.at)
	m.nodes, m.counted = g.counter.Read(m.at, g.job.Libraries, g.job.Processes())
	return m
}

// unit is what such slices are counted in.
type unit uint8

const (
	unitCalls   unit = iota // of the reference
	unitCounted             // autograd nodes, read in the job's memory
	unitNodes               // autograd nodes, as the records tell them
	unitTime
)

// phase is what a unit says of the job: who makes autograd nodes trains.
func (u unit) phase() string {
	if u == unitCounted || u == unitNodes {
		return event.PhaseTraining
	}
	return event.PhaseOther
}

func (u unit) name(g *gauge) string {
	switch u {
	case unitCalls:
		if g.countsSteps() {
			return event.UnitSteps
		}
		return event.UnitCalls
	case unitCounted, unitNodes:
		return event.UnitNodes
	}
	return event.UnitTime
}

// nodesCounted reports whether the nodes were counted at both marks, and are enough
// between them to weigh by.
func nodesCounted(from, to sliceMark) bool {
	return from.counted && to.counted && to.nodes >= from.nodes+weightNodes
}

// basis is what a slice is weighed by.
func (g *gauge) basis(i *interval) unit {
	counted := i.off.steps - i.on.steps
	if !g.manySteps(i) {
		return unitTime
	}
	switch {
	case g.reference != nil && counted >= weightSteps && !i.on.at.Before(g.reference.since):
		return unitCalls
	case nodesCounted(i.on, i.off):
		return unitCounted
	case g.nodes.Seen(i.epoch) >= weightNodes:
		return unitNodes
	}
	return unitTime
}

// countsSteps reports whether what the marks count as steps are such, not the calls
// of an operator that stands in for them.
func (g *gauge) countsSteps() bool {
	return g.reference == nil || g.reference.probe.Function.Step
}

// manySteps reports whether a slice saw so many steps that it does not matter where
// in a step it began and ended. Nodes are made in the forward pass alone: those of a
// slice of a step and a half tell nothing of its backward passes. A job that is not
// known to make steps has none to be cut.
func (g *gauge) manySteps(i *interval) bool {
	steps, known := uint64(0), g.steps.Longest() > 0
	if g.countsSteps() {
		steps, known = i.off.steps-i.on.steps, known || i.off.steps > 0
	}
	for index, h := range i.seen {
		if g.probes.At(index).Function.Step {
			steps, known = max(steps, h.Recorded), known || h.Recorded > 0
		}
	}
	return !known || steps >= weightSteps
}

// amounts is how much of its unit a slice saw, and how much lies in its stretch. Time is
// less what the probes themselves took of it.
func (g *gauge) amounts(i *interval, by unit, from, to sliceMark) (recorded, represented float64) {
	switch by {
	case unitCalls:
		recorded, represented = float64(i.off.steps-i.on.steps), float64(to.steps-min(to.steps, from.steps))
	case unitCounted:
		recorded, represented = float64(i.off.nodes-i.on.nodes), float64(to.nodes-min(to.nodes, from.nodes))
	case unitNodes:
		recorded, represented = g.nodes.Between(i.on.at, i.off.at), g.nodes.Between(from.at, to.at)
	default:
		length := i.off.at.Sub(i.on.at)
		// The estimate of the cost may exceed the slice on a job of nothing but calls.
		cost := min(i.cost, length*3/4)
		recorded, represented = float64(length-cost), float64(to.at.Sub(from.at)-cost-i.stall)
	}
	return max(1, recorded), represented
}

// done is how far the job came between two marks: in steps, or else in autograd
// nodes, as far as the decoder has read.
func (g *gauge) done(from, to sliceMark) (count float64, in unit) {
	if to.steps > from.steps {
		return float64(to.steps - from.steps), unitCalls
	}
	if nodesCounted(from, to) {
		return float64(to.nodes - from.nodes), unitCounted
	}
	return g.nodes.Between(from.at, to.at), unitNodes
}

// numbered reports whether a slice saw autograd nodes enough to be weighed by, or
// whether the job's steps are known.
func (g *gauge) numbered(on, off sliceMark, seen map[uint32]Hits) bool {
	if nodesCounted(on, off) || g.steps.Longest() > 0 {
		return true
	}
	nodes := uint64(0)
	for index, h := range seen {
		if g.probes.At(index).Function.Action == catalog.Sequence {
			nodes += h.Recorded
		}
	}
	return nodes >= weightNodes
}

// progressOfSteps says what a slice of known steps stands for.
func progressOfSteps(row event.Slice, ratio float64) string {
	if row.Phase != event.PhaseTraining {
		return ""
	}
	return fmt.Sprintf("%.1f of %.0f steps, each place in a step by how often it was seen: a row stands for %.2f calls", row.Recorded, row.Represented, ratio)
}

// said says what another slice stands for.
func (g *gauge) said(by unit, row event.Slice, ratio float64) (text string) {
	switch by {
	case unitCounted:
		text = fmt.Sprintf("%.0f of %.0f autograd nodes", row.Recorded, row.Represented)
	case unitNodes:
		text = fmt.Sprintf("%.0f of %.0f autograd nodes", row.Recorded, row.Represented)
		if !g.nodes.Read(time.Unix(0, row.ToNS)) {
			text += " (those after the last slice are an estimate, by CPU time)"
		}
	case unitTime:
		text = "too few steps to count, so weighted by time, an estimate"
	default:
		of := "steps"
		if !g.countsSteps() {
			of = "calls of " + g.reference.probe.Name
		}
		text = fmt.Sprintf("%.0f of %.0f %s", row.Recorded, row.Represented, of)
	}
	return text + fmt.Sprintf(": a row stands for %.2f calls", ratio)
}
