package tracer

import (
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
)

// A job that makes no backward pass has no steps to weigh slices by. Then one
// of its own operators stands in for the step: the least frequent one that a
// slice saw often enough, counted all the time. If even that would take too
// much of the budget, the weights are from time, and say so.

// referenceSpec is the entry of the kernel's probe table that counts it; the
// probes of files end below.
const referenceSpec = maxSpecs - 1

// referenceShare is the most of the budget that the reference may take.
const referenceShare = 0.4

// reference counts the calls of one operator without recording them.
type reference struct {
	probe *probe
	links map[int]*linkSet
	// base is what the slice that chose it saw of it: with it that slice is
	// counted by the reference as well.
	base uint64
	paid uint64 // hits that are in the account
}

// referenceName is what the account calls it, among the anchor groups.
const referenceName = "reference"

// price is what its hits since the last call have cost the job, nanoseconds.
func (r *reference) price(g *governor) float64 {
	count, err := g.session.kernel.count(referenceSpec)
	if err != nil {
		return 0
	}
	calls := count.Entries - r.paid
	r.paid = count.Entries
	return float64(calls) * g.countingHit(r.probe)
}

// countingHit is what a hit costs where it is only counted: the program that
// does it is the one that the calibration measured.
func (g *governor) countingHit(p *probe) float64 {
	return g.cost.warm[p.planned.Entry.Cost] + g.cost.cold
}

// chooseReference attaches the reference of a job whose slice saw no steps.
func (g *governor) chooseReference(length time.Duration) error {
	var best *probe
	fewest := uint64(0)
	for index, h := range g.seen {
		p := g.session.probes.at(index)
		if p.planned.Function.Action != catalog.Span || h.recorded < weightSteps {
			continue
		}
		switch {
		case best == nil, h.recorded < fewest, h.recorded == fewest && index < best.index, p.planned.Function.Step:
			best, fewest = p, h.recorded
		}
		if best.planned.Function.Step {
			break
		}
	}
	if best == nil || !g.affords(best, fewest, length) {
		return nil
	}
	if err := g.refer(best, fewest); err != nil || g.reference == nil {
		return err
	}
	g.on.steps, g.off.steps = 0, fewest
	g.cycleStart = g.on
	for index := range g.seen {
		g.session.probes.at(index).covered = g.on
	}
	return nil
}

// affords reports whether the calls of a probe, of which there were so many in
// a time, can all be counted.
func (g *governor) affords(p *probe, calls uint64, over time.Duration) bool {
	return float64(calls)*g.countingHit(p) <= referenceShare*g.allowance()*float64(over)*float64(g.session.busyProcesses())
}

// refer counts the calls of a probe from now on, unless nobody maps its file
// any more.
func (g *governor) refer(p *probe, base uint64) error {
	if err := p.file.source.verify([]PlannedProbe{*p.planned}, []int{0}); err != nil {
		g.session.dropChanged(p.file, err)
		return nil
	}
	r := &reference{probe: p, links: map[int]*linkSet{}, base: base}
	offset, _ := p.file.plan.file.FileOffset(p.planned.Address + p.planned.Entry.Offset)
	where := &sites{entry: siteList{[]uint64{offset}, []uint64{cookie(referenceSpec, 0, 0, true)}}}
	for _, pid := range p.file.pids() {
		set, err := g.session.kernel.attachLearn(p.file.source.path(), pid, where)
		if err != nil {
			r.close()
			if vanished(err) {
				return nil
			}
			return err
		}
		r.links[pid] = set
	}
	g.reference = r
	return nil
}

// keepCounting makes a step's function that goes into slices the reference,
// unless the numbers of autograd nodes tell how far the job is, which is for nothing.
func (g *governor) keepCounting() error {
	if g.session.readsNodes() || g.counter.counting() {
		return nil
	}
	for _, p := range g.session.steps {
		count, err := g.session.kernel.count(p.index)
		if err != nil || !g.demoted[p.planned.Group.Name] || g.reference != nil {
			continue
		}
		if g.affords(p, count.Entries, time.Since(g.begun)) {
			return g.refer(p, 0)
		}
	}
	return nil
}

// readsNodes reports whether the slices record what numbers autograd nodes, and
// the operators that they belong to.
func (s *Session) readsNodes() bool {
	numbers, operators := false, false
	for _, f := range s.files {
		for _, i := range s.usable(f, catalog.Detail) {
			function := f.plan.Probes[i].Function
			numbers = numbers || function.Action == catalog.Sequence
			operators = operators || function.Layer == "op"
		}
	}
	return numbers && operators
}

func (r *reference) close() {
	for _, set := range r.links {
		set.Close()
	}
}
