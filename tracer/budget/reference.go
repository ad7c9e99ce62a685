package budget

import (
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/weights"
)

// A job that makes no backward pass has no steps to weigh slices by. Then one
// of its own operators stands in for the step: the least frequent one that a
// slice saw often enough, counted all the time. If even that would take too
// much of the budget, the weights are from time, and say so.

// referenceShare is the most of the budget that the reference may take.
const referenceShare = 0.4

// reference chooses that operator and has its calls counted, without recording them.
type reference struct {
	*joints
	account  *account
	gauge    *weights.Gauge // gets it
	probe    Probe
	counting Counting // nil before there is one
	paid     uint64   // hits that are in the account
}

// counts reports whether there is one.
func (r *reference) counts() bool { return r.counting != nil }

// close ends it.
func (r *reference) close() {
	if r.counts() {
		r.counting.Close()
	}
}

// referenceName is what the account calls it, among the anchor groups.
const referenceName = "reference"

// price is what its hits since the last call have cost the job, nanoseconds.
func (r *reference) price() float64 {
	total, ok := r.counting.Calls()
	if !ok {
		return 0
	}
	calls := total - r.paid
	r.paid = total
	return float64(calls) * r.account.countingHit(r.probe)
}

// choose attaches the reference of a job whose slice, which lasted so long, saw
// no steps. It returns how many of its calls the slice saw, 0 where there is none.
func (r *reference) choose(seen map[uint32]Hits, length time.Duration) (calls uint64, err error) {
	var best *Probe
	fewest := uint64(0)
	for index, h := range seen {
		p := r.probes.At(index)
		if p.Function.Action != spec.Span || h.Recorded < weights.MinSteps {
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
	if best == nil || !r.affords(*best, fewest, length) {
		return 0, nil
	}
	if err := r.count(*best, fewest); err != nil || !r.counts() {
		return 0, err
	}
	return fewest, nil
}

// affords reports whether the calls of a probe, of which there were so many in
// a time, can all be counted.
func (r *reference) affords(p Probe, calls uint64, over time.Duration) bool {
	a := r.account
	return float64(calls)*a.countingHit(p) <= referenceShare*a.allowance()*float64(over)*float64(a.busyProcesses())
}

// count counts the calls of a probe from now on, unless no process maps its file
// any more.
func (r *reference) count(p Probe, base uint64) error {
	counting, err := r.probes.CountOnly(p.Index)
	if err != nil || counting == nil {
		return err
	}
	r.probe, r.counting = p, counting
	r.gauge.Reference = &weights.Reference{Probe: p.Probe, Calls: counting.Calls, Base: base, Since: time.Now()}
	return nil
}

// keepCounting makes a step's function that goes into slices the reference, when its
// calls so far came in some time, unless the numbers of autograd nodes tell how far the job is, which is for nothing.
func (r *reference) keepCounting(steps []uint32, demoted []string, over time.Duration) error {
	if r.readsNodes() || r.gauge.Counter.Counting() {
		return nil
	}
	for _, index := range steps {
		p := r.probes.At(index)
		calls, ok := r.probes.Calls(index)
		if !ok || !slices.Contains(demoted, p.Group) || r.counts() {
			continue
		}
		if r.affords(p, calls, over) {
			return r.count(p, 0)
		}
	}
	return nil
}

// readsNodes reports whether the slices record what numbers autograd nodes, and
// the operators that they belong to.
func (r *reference) readsNodes() bool {
	numbers, operators := false, false
	for _, index := range r.probes.Sliced() {
		function := r.probes.At(index).Function
		numbers = numbers || function.Action == spec.Sequence
		operators = operators || function.Layer == "op"
	}
	return numbers && operators
}
