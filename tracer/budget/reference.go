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
func (r *reference) price(a *account) float64 {
	total, ok := r.counting.Calls()
	if !ok {
		return 0
	}
	calls := total - r.paid
	r.paid = total
	return float64(calls) * a.countingHit(r.probe)
}

// chooseReference attaches the reference of a job whose slice, which lasted so long, saw
// no steps. It returns how many of its calls the slice saw, 0 where there is none.
func (g *gauge) chooseReference(a *account, seen map[uint32]Hits, length time.Duration) (calls uint64, err error) {
	var best *Probe
	fewest := uint64(0)
	for index, h := range seen {
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
	if best == nil || !affords(a, *best, fewest, length) {
		return 0, nil
	}
	if err := g.refer(*best, fewest); err != nil || g.reference == nil {
		return 0, err
	}
	return fewest, nil
}

// affords reports whether the calls of a probe, of which there were so many in
// a time, can all be counted.
func affords(a *account, p Probe, calls uint64, over time.Duration) bool {
	return float64(calls)*a.countingHit(p) <= referenceShare*a.allowance()*float64(over)*float64(a.busyProcesses())
}

// refer counts the calls of a probe from now on, unless nobody maps its file
// any more.
func (g *gauge) refer(p Probe, base uint64) error {
	counting, err := g.probes.CountOnly(p.Index)
	if err != nil || counting == nil {
		return err
	}
	g.reference = &reference{probe: p, counting: counting, base: base, since: time.Now()}
	return nil
}

// keepCounting makes a step's function that goes into slices the reference, when its
// calls so far came in some time, unless the numbers of autograd nodes tell how far the job is, which is for nothing.
func (g *gauge) keepCounting(a *account, steps []uint32, demoted []string, over time.Duration) error {
	if g.readsNodes() || g.counter.Counting() {
		return nil
	}
	for _, index := range steps {
		p := g.probes.At(index)
		calls, ok := g.probes.Calls(index)
		if !ok || !slices.Contains(demoted, p.Group) || g.reference != nil {
			continue
		}
		if affords(a, p, calls, over) {
			return g.refer(p, 0)
		}
	}
	return nil
}

// readsNodes reports whether the slices record what numbers autograd nodes, and
// the operators that they belong to.
func (g *gauge) readsNodes() bool {
	numbers, operators := false, false
	for _, index := range g.probes.Sliced() {
		function := g.probes.At(index).Function
		numbers = numbers || function.Action == catalog.Sequence
		operators = operators || function.Layer == "op"
	}
	return numbers && operators
}
