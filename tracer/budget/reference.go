package budget

import (
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
)

// A job that makes no backward pass has no steps to weigh slices by. Then one
// of its own operators stands in for the step: the least frequent one that a
// slice saw often enough, counted all the time. If even that would take too
// much of the budget, the weights are from time, and say so.

// referenceShare is the most of the budget that the reference may take.
const referenceShare = 0.4

// reference counts the calls of one operator without recording them.
type reference struct {
	probe    Probe
	counting Counting
	// base is what the slice that chose it saw of it: with it that slice is
	// counted by the reference as well.
	base  uint64
	paid  uint64    // hits that are in the account
	since time.Time // when it began to count
}

// referenceName is what the account calls it, among the anchor groups.
const referenceName = "reference"

// price is what its hits since the last call have cost the job, nanoseconds.
func (r *reference) price(g *Governor) float64 {
	total, ok := r.counting.Calls()
	if !ok {
		return 0
	}
	calls := total - r.paid
	r.paid = total
	return float64(calls) * g.countingHit(r.probe)
}

// countingHit is what a hit costs where it is only counted: the program that
// does it is the one that the calibration measured.
func (g *Governor) countingHit(p Probe) float64 {
	return g.cost.Warm[p.Entry] + g.cost.Cold
}

// chooseReference attaches the reference of a job whose slice saw no steps.
func (g *Governor) chooseReference(length time.Duration) error {
	var best *Probe
	fewest := uint64(0)
	for index, h := range g.seen {
		p := g.probes.At(index)
		if p.Function.Action != catalog.Span || h.Recorded < weightSteps {
			continue
		}
		switch {
		case best == nil, h.Recorded < fewest, h.Recorded == fewest && index < best.Index, p.Function.Step:
			best, fewest = &p, h.Recorded
		}
		if best.Function.Step {
			break
		}
	}
	if best == nil || !g.affords(*best, fewest, length) {
		return nil
	}
	if err := g.refer(*best, fewest); err != nil || g.reference == nil {
		return err
	}
	g.off.steps = fewest
	return nil
}

// affords reports whether the calls of a probe, of which there were so many in
// a time, can all be counted.
func (g *Governor) affords(p Probe, calls uint64, over time.Duration) bool {
	return float64(calls)*g.countingHit(p) <= referenceShare*g.allowance()*float64(over)*float64(g.busyProcesses())
}

// refer counts the calls of a probe from now on, unless nobody maps its file
// any more.
func (g *Governor) refer(p Probe, base uint64) error {
	counting, err := g.probes.CountOnly(p.Index)
	if err != nil || counting == nil {
		return err
	}
	g.reference = &reference{probe: p, counting: counting, base: base, since: time.Now()}
	return nil
}

// keepCounting makes a step's function that goes into slices the reference,
// unless the numbers of autograd nodes tell how far the job is, which is for nothing.
func (g *Governor) keepCounting(steps []uint32, demoted []string) error {
	if g.readsNodes() || g.counter.counting() {
		return nil
	}
	for _, index := range steps {
		p := g.probes.At(index)
		calls, ok := g.probes.Calls(index)
		if !ok || !slices.Contains(demoted, p.Group) || g.reference != nil {
			continue
		}
		if g.affords(p, calls, time.Since(g.begun)) {
			return g.refer(p, 0)
		}
	}
	return nil
}

// readsNodes reports whether the slices record what numbers autograd nodes, and
// the operators that they belong to.
func (g *Governor) readsNodes() bool {
	numbers, operators := false, false
	for _, index := range g.probes.Sliced() {
		function := g.probes.At(index).Function
		numbers = numbers || function.Action == catalog.Sequence
		operators = operators || function.Layer == "op"
	}
	return numbers && operators
}
