package weights

import (
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/progress"
)

// What a slice is weighed by where the steps of a process are not known.

const (
	// MinSteps is the least number of steps in a slice by which all its rows are weighed
	// alike. Of fewer, each place in a step is weighed by itself.
	MinSteps = 8
	// MinNodes is the least number of nodes in a slice by which it is weighed.
	MinNodes = 32
)

// Gauge tells how far the job has come between two moments.
type Gauge struct {
	Nodes     *progress.NodeClock   // what tells their number where it is not read
	Steps     *progress.StepClock   // where in its step each process was
	Counter   *progress.NodeCounter // reads the number of nodes; nil where it can't
	Reference *Reference            // nil: none
	probes    Probes
	job       Job
}

// NewGauge makes one, without a counter and a reference.
func NewGauge(probes Probes, job Job, nodes *progress.NodeClock, steps *progress.StepClock) *Gauge {
	return &Gauge{Nodes: nodes, Steps: steps, probes: probes, job: job}
}

// Mark is now.
func (g *Gauge) Mark() Mark {
	m := Mark{At: time.Now(), Steps: g.probes.PastSteps()}
	for _, index := range g.probes.Steps() {
		if calls, ok := g.probes.Calls(index); ok {
			m.Steps += calls
		}
	}
	if g.Reference != nil {
		if calls, ok := g.Reference.Calls(); ok {
			m.Steps = g.Reference.Base + calls
		}
	}
	g.Nodes.Tick(m.At)
	m.Nodes, m.Counted = g.Counter.Read(m.At, g.job.Libraries, g.job.Processes())
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

func (u unit) name(g *Gauge) string {
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
func nodesCounted(from, to Mark) bool {
	return from.Counted && to.Counted && to.Nodes >= from.Nodes+MinNodes
}

// basis is what a slice is weighed by.
func (g *Gauge) basis(i *interval) unit {
	counted := i.off.Steps - i.on.Steps
	if !g.ManySteps(i.on, i.off, i.seen) {
		return unitTime
	}
	switch {
	case g.Reference != nil && counted >= MinSteps && !i.on.At.Before(g.Reference.Since):
		return unitCalls
	case nodesCounted(i.on, i.off):
		return unitCounted
	case g.Nodes.Seen(i.epoch) >= MinNodes:
		return unitNodes
	}
	return unitTime
}

// countsSteps reports whether what the marks count as steps are such, not the calls
// of an operator that stands in for them.
func (g *Gauge) countsSteps() bool {
	return g.Reference == nil || g.Reference.Probe.Function.Step
}

// ManySteps reports whether a slice saw so many steps that it does not matter where
// in a step it began and ended. Nodes are made in the forward pass alone: those of a
// slice of a step and a half hold none of its backward passes. A job that is not
// known to make steps has none to be cut.
func (g *Gauge) ManySteps(on, off Mark, seen map[uint32]uint64) bool {
	steps, known := uint64(0), g.Steps.Longest() > 0
	if g.countsSteps() {
		steps, known = off.Steps-on.Steps, known || off.Steps > 0
	}
	for index, calls := range seen {
		if g.probes.Probe(index).Function.Step {
			steps, known = max(steps, calls), known || calls > 0
		}
	}
	return !known || steps >= MinSteps
}

// amounts is how much of its unit a slice saw, and how much lies in its stretch. Time is
// less what the probes themselves took of it.
func (g *Gauge) amounts(i *interval, by unit, from, to Mark) (recorded, represented float64) {
	switch by {
	case unitCalls:
		recorded, represented = float64(i.off.Steps-i.on.Steps), float64(to.Steps-min(to.Steps, from.Steps))
	case unitCounted:
		recorded, represented = float64(i.off.Nodes-i.on.Nodes), float64(to.Nodes-min(to.Nodes, from.Nodes))
	case unitNodes:
		recorded, represented = g.Nodes.Between(i.on.At, i.off.At), g.Nodes.Between(from.At, to.At)
	default:
		length := i.off.At.Sub(i.on.At)
		// The estimate of the cost may exceed the slice on a job of nothing but calls.
		cost := min(i.cost, length*3/4)
		recorded, represented = float64(length-cost), float64(to.At.Sub(from.At)-cost-i.stall)
	}
	return max(1, recorded), represented
}

// Numbered reports whether a slice saw autograd nodes enough to be weighed by, or
// whether the job's steps are known.
func (g *Gauge) Numbered(on, off Mark, seen map[uint32]uint64) bool {
	if nodesCounted(on, off) || g.Steps.Longest() > 0 {
		return true
	}
	nodes := uint64(0)
	for index, calls := range seen {
		if g.probes.Probe(index).Function.Action == spec.Sequence {
			nodes += calls
		}
	}
	return nodes >= MinNodes
}

// progressOfSteps says what a slice of known steps stands for.
func progressOfSteps(row event.Slice, ratio float64) string {
	if row.Phase != event.PhaseTraining {
		return ""
	}
	return fmt.Sprintf("%.1f of %.0f steps, each place in a step by how often it was seen: a row stands for %.2f calls", row.Recorded,
		row.Represented, ratio)
}

// said says what another slice stands for.
func (g *Gauge) said(by unit, row event.Slice, ratio float64) (text string) {
	switch by {
	case unitCounted:
		text = fmt.Sprintf("%.0f of %.0f autograd nodes", row.Recorded, row.Represented)
	case unitNodes:
		text = fmt.Sprintf("%.0f of %.0f autograd nodes", row.Recorded, row.Represented)
		if !g.Nodes.Read(time.Unix(0, row.ToNS)) {
			text += " (those after the last slice are an estimate, by CPU time)"
		}
	case unitTime:
		text = "too few steps to count, so weighted by time, an estimate"
	default:
		of := "steps"
		if !g.countsSteps() {
			of = "calls of " + g.Reference.Probe.Name
		}
		text = fmt.Sprintf("%.0f of %.0f %s", row.Recorded, row.Represented, of)
	}
	return text + fmt.Sprintf(": a row stands for %.2f calls", ratio)
}
