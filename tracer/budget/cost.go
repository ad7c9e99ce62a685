package budget

import (
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/expense"
)

// Cost is what the probes of a recording have cost its job.
type Cost struct {
	Hits      uint64        // traps, whether recorded or passed by
	Estimated time.Duration // of the hits, and of putting probes in and out, in all processes
	// Parts are shares of the job's own time, by what costs it; without those that
	// could not be measured. Share is their sum.
	Parts expense.Parts
	Share float64
	// Whole: Parts has all that the recording costs, not the probes' alone.
	Whole bool
	// Exceeded: on a run so short the first slice of two steps took more than the budget.
	Exceeded bool
}

// Cost estimates it, at the end. probes is how many there are in the kernel's table.
func (g *Governor) Cost(probes int) Cost {
	indices := make([]uint32, probes)
	for i := range indices {
		indices[i] = uint32(i)
	}
	a := g.account
	a.tick(time.Now())
	own := a.clock.Own
	if a.budget <= 0 || own <= 0 {
		own = time.Since(g.begun)
	}
	own *= time.Duration(max(1, a.processes))
	seen := g.probes.Hits(indices)
	c := Cost{Estimated: a.price(seen, own) + a.stalls}
	for _, h := range seen {
		c.Hits += h.Traps
	}
	if own > 0 {
		c.Parts.InOut = float64(a.stalls) / float64(own)
		c.Parts.Probes = float64(c.Estimated)/float64(own) - c.Parts.InOut
		c.Share = c.Parts.Sum()
	}
	c.Exceeded = a.budget > 0 && g.strata.granted && c.Share > a.whole
	return c
}
