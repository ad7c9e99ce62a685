package budget

import "time"

// Cost is what the probes of a recording have cost its job.
type Cost struct {
	Hits      uint64        // traps, whether recorded or passed by
	Estimated time.Duration // of the hits, and of putting probes in and out, in all processes
	Share     float64       // of the job's own time
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
		c.Share = float64(c.Estimated) / float64(own)
	}
	c.Exceeded = a.budget > 0 && g.strata.granted && c.Share > a.budget/budgetShare
	return c
}
