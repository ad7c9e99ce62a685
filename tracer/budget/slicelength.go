package budget

import (
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/weights"
)

// How long a slice lasts.

// planNext chooses how long the next slice lasts, so that a cycle takes about
// a second: the budget of a second, less the fixed cost of a slice, at the rate
// of the last one. It is never shorter than a dozen steps, nor so short that
// its fixed cost prevails; the pause grows instead.
func (s *slicer) planNext(cost, fixed time.Duration) {
	length := s.off.At.Sub(s.on.At)
	s.length = minSlice
	if rate := float64(cost) / float64(max(length, time.Millisecond)); rate > 0 {
		aim := s.account.allowance()*float64(cycleAim) - float64(fixed)
		s.length = max(s.length, time.Duration(max(aim, fixedShare*float64(fixed))/rate))
	}
	if steps := s.stepsSeen(s.probes); steps > 0 {
		s.length = max(s.length, length*minSliceSteps/time.Duration(steps))
	}
	s.length = min(s.length, cycleAim)
	if whole := time.Duration((1 + stepRoom) * float64(s.gauge.Steps.Longest())); whole <= maxWhole &&
		float64(cost)/float64(max(length, time.Millisecond))*float64(whole) <= float64(wholeCost) {
		s.length = max(s.length, whole)
	}
}

// awaitsStep reports whether the trial should go on until it has seen a whole step:
// what it saw of a part of one says little of the rest.
func (s *slicer) awaitsStep(m weights.Mark, rate float64) bool {
	length := m.At.Sub(s.on.At)
	if m.Steps >= s.on.Steps+weights.MinSteps || length >= maxWhole || rate*float64(length) >= float64(wholeCost) {
		return false
	}
	if step := s.gauge.Steps.Longest(); step > 0 {
		return float64(length) < (1+stepRoom)*float64(step)
	}
	return s.gauge.Counter.Counting() // it trains, then
}

// awaitsPass reports whether the present slice has seen one backward pass begin and
// should go on until the next one does: what lies between the two is a whole step, whatever
// the slice's own beginning and end do to the steps that they are in.
func awaitsPass(s *slicer, m weights.Mark) bool {
	whole := s.gauge.Steps.Longest()
	if whole <= 0 || whole > maxWhole || len(s.probes.Steps()) == 0 {
		return false
	}
	if m.Steps != s.on.Steps+1 || float64(m.At.Sub(s.on.At)) > 2*(1+stepRoom)*float64(whole) {
		return false
	}
	seen := since(s.before, s.probes.Hits(s.attached))
	return s.account.price(seen, m.At.Sub(s.on.At)*time.Duration(s.account.busyProcesses())) < wholeCost
}

// stepsSeen is how many steps the slice had: counted, or else the calls that it
// recorded of what a step calls once.
func (s *slice) stepsSeen(probes Probes) uint64 {
	steps := s.off.Steps - s.on.Steps
	if steps > 0 {
		return steps
	}
	for index, h := range s.seen {
		if probes.At(index).Function.Step {
			steps = max(steps, h.Recorded)
		}
	}
	return steps
}
