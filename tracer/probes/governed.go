package probes

import (
	"github.com/ebpfprof/ebpfprof/tracer/budget"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/weights"
)

// Governed are the probes as the budget decides over them: what there is and what it has
// counted, and those of slices.
func (s *Set) Governed() budget.Probes {
	return struct {
		counted
		sliced
	}{counted{s}, sliced{s}}
}

// counted is what there is, and what it has counted.
type counted struct{ s *Set }

func (c counted) At(index uint32) budget.Probe {
	own := c.s.at(index)
	p := own.Planned
	return budget.Probe{
		Probe: weights.Probe{Index: index, Name: p.Call.Name, Group: p.Group.Name, Function: p.Function, UnusedUntil: own.unusedUntil,
			FirstIn: own.firstIn},
		Entry: p.Entry.Cost, Worst: p.CostliestSite(), Stack: p.TakesStack(), Line: p.TakesLine(),
		Reads: p.ShapesPrice(), Launches: p.Group.Launches,
	}
}

// of lists the usable probes of a tier.
func (c counted) of(tier spec.Tier) (indices []uint32) {
	for _, f := range c.s.files {
		for _, i := range c.s.usable(f, tier) {
			indices = append(indices, f.base+uint32(i))
		}
	}
	return indices
}

func (c counted) Anchors() []uint32 { return c.of(spec.Anchor) }
func (c counted) Sliced() []uint32  { return c.of(spec.Detail) }

func (c counted) AnySliced() bool {
	for _, f := range c.s.files {
		for i := range f.plan.Probes {
			if p := &f.plan.Probes[i]; p.Usable() && c.s.tier(p.Group) == spec.Detail {
				return true
			}
		}
	}
	return false
}

func (c counted) Steps() []uint32 {
	indices := make([]uint32, len(c.s.steps.probes))
	for i, p := range c.s.steps.probes {
		indices[i] = p.Index
	}
	return indices
}

func (c counted) PastSteps() uint64 { return c.s.steps.past }

func (c counted) Hits(probes []uint32) map[uint32]budget.Hits {
	counts := make(map[uint32]budget.Hits, len(probes))
	for _, index := range probes {
		if c, err := c.s.counted(index); err == nil {
			counts[index] = budget.Hits{Recorded: max(c.Entries, c.Exits), Traps: c.Entries + c.Exits + c.Passed}
		}
	}
	return counts
}

func (c counted) Calls(index uint32) (uint64, bool) {
	count, err := c.s.counted(index)
	return count.Entries, err == nil
}

func (c counted) Sites(probes []uint32) (sites int) {
	for f, within := range c.s.byFile(probes) {
		sites += SitesOf(f.plan, f.base, within).Count()
	}
	return sites
}
