package budget

import (
	"time"
)

// What the probes cost the job, as far as it can be told from counting hits.

// HitCost is what one hit costs the job, nanoseconds, by site.Cost.
type HitCost struct {
	Warm [3]float64 // in a loop of nothing else
	Cold float64    // how much more when the job has used the caches in between
}

const (
	// inPlace is how much more expensive a hit is in a real job than in the calibration
	// loop: the record has to be written, and more maps are looked up than the
	// program that counts does (0.9 against 0.55 µs on the design's machine).
	inPlace = 1.8
	// inPlaceCold is that for what cold caches cost: the job has also replaced
	// what the CPU had learnt of the kernel's code (the dozen hits in a step of
	// 0.53 ms took 3.4 µs each, where the loop says 1.2).
	inPlaceCold = 3.0
	// stallPerSite is how long one site stalls the job, going in and coming out
	// together, and stallPerSlice what comes on top of it once (docs/overhead.md).
	stallPerSite  = 5 * time.Microsecond
	stallPerSlice = 4 * time.Millisecond

	// budgetShare is the share of the budget that the account may fill. The rest is for
	// what it does not see: reading and writing the records on the other thread
	// of the job's core, caches that a sample leaves cold (a usual step between
	// the slices is 1 to 2.5 % longer at the level window, docs/overhead.md).
	budgetShare = 0.5

	// correctBy is how much of a slice's surprise is believed, and mostCorrection how far
	// the estimates may be corrected in all.
	correctBy      = 0.3
	mostCorrection = 3.0

	// A hit that comes soonAfter the one before it finds the caches warm; lateAfter
	// it, the job has filled them with its own.
	soonAfter = 3 * time.Microsecond
	lateAfter = 30 * time.Microsecond
)

// pace is how cold the caches are at a hit, from 0 to 1, when so many come in a
// time.
func (g *Governor) pace(seen map[uint32]Hits, over time.Duration) float64 {
	traps := uint64(0)
	for _, h := range seen {
		traps += h.Traps
	}
	if traps == 0 {
		return 1
	}
	gap := over / time.Duration(traps)
	return min(1, max(0, float64(gap-soonAfter)/float64(lateAfter-soonAfter)))
}

// priceOf estimates what the hits of one probe have cost the job, nanoseconds.
func (g *Governor) priceOf(p Probe, h Hits, pace float64, taking TakingCost) float64 {
	price := float64(h.Traps) * (g.cost.Warm[p.Worst]*inPlace + g.cost.Cold*pace*inPlaceCold)
	price += float64(h.Recorded) * p.Reads
	switch {
	case p.Stack:
		price += float64(h.Recorded) * taking.Stack
	case p.Line:
		price += float64(h.Recorded) * taking.Line
	}
	return price
}

// price estimates what hits in a time of the job have cost it.
func (g *Governor) price(seen map[uint32]Hits, over time.Duration) time.Duration {
	total, pace, taking := 0.0, g.pace(seen, over), g.job.TakingCost()
	for index, h := range seen {
		total += g.priceOf(g.probes.At(index), h, pace, taking)
	}
	return time.Duration(total * g.correction)
}

// judgedSlice is what a slice's hits were thought to cost, and the marks that
// tell what they did.
type judgedSlice struct {
	free     sliceMark // the end of the slice before
	on, off  sliceMark
	epoch    uint32
	estimate time.Duration
	many     bool // steps, so that those which it cut do not matter
}

// done is how far the job came between two marks: in steps, or else in autograd
// nodes, as far as the decoder has read.
func (g *Governor) done(from, to sliceMark) (count float64, in unit) {
	if to.steps > from.steps {
		return float64(to.steps - from.steps), unitCalls
	}
	if nodesCounted(from, to) {
		return float64(to.nodes - from.nodes), unitCounted
	}
	return g.nodes.between(from.at, to.at), unitNodes
}

// correct learns how far the estimate of a slice's hits is off, from how far the
// job came in it and between it and the slice before: what the job really lost.
// It is called at the end of the slice after it, when all its records are read.
func (g *Governor) correct() {
	j := &g.judged
	if j.estimate <= 0 || j.free.at.IsZero() || !j.on.at.After(j.free.at) || !j.many {
		return
	}
	in, unit := g.done(j.on, j.off)
	out, outUnit := g.done(j.free, j.on)
	if unit != outUnit {
		return
	}
	switch unit {
	case unitCalls:
		if in < weightSteps || out < weightSteps {
			return
		}
	case unitCounted:
		if in < weightNodes || out < max(weightNodes, in/2) {
			return
		}
	case unitNodes: // told at both ends of what lies between the slices
		if out < weightNodes || g.nodes.seen(j.epoch) < weightNodes || g.nodes.seen(j.epoch-1) < weightNodes {
			return
		}
	}
	inside, outside := j.off.at.Sub(j.on.at), j.on.at.Sub(j.free.at)
	usual := float64(outside) / out * in
	ratio := min(2, max(0.5, (float64(inside)-usual)/float64(j.estimate)))
	// One slice is a noisy witness: a share of its word, and not for ever.
	g.correction = min(mostCorrection, max(1/mostCorrection, g.correction*(1+correctBy*(ratio-1))))
}

// stall estimates what putting the slice's probes in and taking them out costs.
func (g *Governor) stall() time.Duration {
	return stallPerSlice + time.Duration(g.probes.Sites(g.attached))*stallPerSite
}

// since is what counters have grown by.
func since(before, now map[uint32]Hits) map[uint32]Hits {
	grown := make(map[uint32]Hits, len(now))
	for index, h := range now {
		b := before[index]
		// Less than before has who came into the place of another.
		grown[index] = Hits{h.Recorded - min(b.Recorded, h.Recorded), h.Traps - min(b.Traps, h.Traps)}
	}
	return grown
}
