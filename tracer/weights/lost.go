package weights

import "time"

// done is how far the job came between two marks: in steps, or else in autograd
// nodes, as far as the decoder has read.
func (g *Gauge) done(from, to Mark) (count float64, in unit) {
	if to.Steps > from.Steps {
		return float64(to.Steps - from.Steps), unitCalls
	}
	if nodesCounted(from, to) {
		return float64(to.Nodes - from.Nodes), unitCounted
	}
	return g.Nodes.Between(from.At, to.At), unitNodes
}

// Lost is how much longer the job took between two marks than for as much between the
// first of them and an earlier one, at which a slice had ended; epoch is that of what was
// recorded between the two. It asks for the records of both to have been read, and does
// not know it where too little was done to tell by.
func (g *Gauge) Lost(free, on, off Mark, epoch uint32) (lost time.Duration, ok bool) {
	in, unit := g.done(on, off)
	out, outUnit := g.done(free, on)
	if unit != outUnit {
		return 0, false
	}
	switch unit {
	case unitCalls:
		if in < MinSteps || out < MinSteps {
			return 0, false
		}
	case unitCounted:
		if in < MinNodes || out < max(MinNodes, in/2) {
			return 0, false
		}
	case unitNodes: // told at both ends of what lies between the slices
		if out < MinNodes || g.Nodes.Seen(epoch) < MinNodes || g.Nodes.Seen(epoch-1) < MinNodes {
			return 0, false
		}
	}
	inside, outside := off.At.Sub(on.At), on.At.Sub(free.At)
	usual := float64(outside) / out * in
	return time.Duration(float64(inside) - usual), true
}
