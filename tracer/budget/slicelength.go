package budget

import "time"

// How long a slice lasts.

// planNext chooses how long the next slice lasts, so that a cycle takes about
// a second: the budget of a second, less the fixed cost of a slice, at the rate
// of the last one. It is never shorter than a dozen steps, nor so short that
// its fixed cost prevails; the pause grows instead.
func (g *Governor) planNext(cost, fixed time.Duration) {
	length := g.off.at.Sub(g.on.at)
	g.onTime = minSlice
	if rate := float64(cost) / float64(max(length, time.Millisecond)); rate > 0 {
		aim := g.allowance()*float64(cycleAim) - float64(fixed)
		g.onTime = max(g.onTime, time.Duration(max(aim, fixedShare*float64(fixed))/rate))
	}
	if steps := g.stepsSeen(); steps > 0 {
		g.onTime = max(g.onTime, length*minSliceSteps/time.Duration(steps))
	}
	g.onTime = min(g.onTime, cycleAim)
	if whole := time.Duration((1 + stepRoom) * float64(g.steps.longest())); whole <= maxWhole && float64(cost)/float64(max(length, time.Millisecond))*float64(whole) <= float64(wholeCost) {
		g.onTime = max(g.onTime, whole)
	}
}

// awaitsStep reports whether the trial should go on until it has seen a whole step:
// what it saw of a part of one says little of the rest.
func (g *Governor) awaitsStep(m sliceMark, rate float64) bool {
	length := m.at.Sub(g.on.at)
	if m.steps >= g.on.steps+weightSteps || length >= maxWhole || rate*float64(length) >= float64(wholeCost) {
		return false
	}
	if step := g.steps.longest(); step > 0 {
		return float64(length) < (1+stepRoom)*float64(step)
	}
	return g.counter.counting() // it trains, then
}

// stepsSeen is how many steps the slice had: counted, or else the calls that it
// recorded of what a step calls once.
func (g *Governor) stepsSeen() uint64 {
	steps := g.off.steps - g.on.steps
	if steps > 0 {
		return steps
	}
	for index, h := range g.seen {
		if g.probes.At(index).Function.Step {
			steps = max(steps, h.Recorded)
		}
	}
	return steps
}
