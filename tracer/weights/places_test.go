package weights

import (
	"math"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// longStep are the parts of a step of testdata/jobs/mlp.py with pauses, ms: the backward
// pass, a pause, the optimizer, a pause, the forward pass, a pause. Nothing marks where the
// forward pass begins and ends.
const (
	backwardFor, pauseFor, optimizerFor, forwardFor = 10, 50, 10, 10
	forwardAfter                                    = backwardFor + pauseFor + optimizerFor + pauseFor
	longStepFor                                     = forwardAfter + forwardFor + pauseFor
)

// slicedLongSteps is a run of long steps and one slice of it, and what the calls in it of a
// forward pass add up to, of which there are forwardFor in each. The step in which the slice
// begins is longer by what its probes took to come in, just before that; the last one in it
// by what they took to come out. The slice ends some time after the second backward pass in
// it has begun.
func slicedLongSteps(steps, on, in, out, more int64) float64 {
	s := simulate()
	begins := make([]int64, steps)
	at, seen, off := int64(0), 0, int64(-1)
	for i := range begins {
		begins[i] = at
		if at >= on && off < 0 {
			if seen++; seen == 2 {
				off = at + more
			}
		}
		length := int64(longStepFor)
		switch {
		case at < on && on < at+length+in:
			length += in
		case off >= 0 && at <= off && off < at+length:
			length += out
		}
		at += length
	}
	shift := func(begin, after int64) int64 { // when a step that began so did what it does so long after that
		switch at := begin + after; {
		case begin < on && begin+longStepFor+in > on && at+in >= on:
			return at + in
		case off >= 0 && begin <= off && at >= off && begin+longStepFor > off:
			return at + out
		default:
			return at
		}
	}
	for _, begin := range begins {
		s.gauge.Steps.Saw(simulatedPID, s.begin+begin*ms1, s.begin+shift(begin, backwardFor)*ms1)
		s.gauge.Steps.Mark(simulatedPID, s.begin+shift(begin, backwardFor+pauseFor)*ms1,
			s.begin+shift(begin, backwardFor+pauseFor+optimizerFor)*ms1)
	}
	s.slice(on, off)
	weigh := s.finish(at)
	sum := 0.0
	for _, begin := range begins {
		for k := range int64(forwardFor) {
			if call := shift(begin, forwardAfter+k); call >= on && call < off {
				sum += weigh(0, call).Weight
			}
		}
	}
	return sum
}

// A slice stalls the job when its probes come in and when they go out: in those steps the
// forward pass comes at another share of the time between two marks than in others. Its
// calls stand for those of all steps all the same, wherever the slice begins and ends.
func TestAForwardPassIsCountedOnceThoughTheSliceMovesIt(t *testing.T) {
	const steps = 40
	for on := int64(5 * longStepFor); on < 6*longStepFor; on += 7 {
		for _, in := range []int64{0, 20, 60} {
			for _, out := range []int64{0, 30, 90} {
				for _, more := range []int64{2, 40, 100, 125, 160} {
					sum := slicedLongSteps(steps, on, in, out, more) / forwardFor
					if math.Abs(sum/steps-1) > 0.06 {
						t.Errorf("slice from %d ms on, %d ms after %d of stall, %d before its end, %d after: a forward pass stands for %.1f, want %d", on,
							on%longStepFor, in, more, out, sum, steps)
					}
				}
			}
		}
	}
}

// What saw as much as a step, but a part of it twice and another never, is no whole step: a
// slice that began in an evaluation, with the forward pass behind it, and ended in the
// middle of an optimizer that took long. Those of whole steps stand for what it left out.
func TestASliceThatMissedAPartOfTheStepStandsForItself(t *testing.T) {
	s := simulate()
	s.step(800, 1, 12)
	for i := range int64(10) {
		s.step(100+30*i, 1, 4)
		if i > 0 {
			s.step(800+30*i, 1, 4)
		}
	}
	s.slice(150, 250)
	s.slice(600, 807)
	weigh := s.finish(1100)
	if n := s.represented(event.PhaseTraining); n != 20 {
		t.Fatalf("the slices stand for %v steps, want 20", n)
	}
	for _, row := range s.slices {
		if row.Phase == event.PhaseTraining && row.BeginNS != s.begin+150*ms1 {
			t.Errorf("a slice of %.2f steps that began in the evaluation stands for %v, want those of whole steps to stand for them", row.Recorded,
				row.Represented)
		}
	}
	sum := 0.0
	for i := range int64(10) {
		if at := 100 + 30*i + 4; at >= 150 && at < 250 { // at the end of the optimizer, which the other did not see
			sum += weigh(0, at).Weight
		}
	}
	if math.Abs(sum-20) > 0.5 {
		t.Errorf("the optimizer's last calls stand for %v, want 20", sum)
	}
}

// A function that is called first in a slow first step is that step's: what it took before its
// usual beginning is no time in which an evaluation may call it.
func TestASlowFirstStepIsNoTimeOfAnotherPhase(t *testing.T) {
	const late = 2
	s := simulate()
	s.gauge.probes = oneGroup{unusedUntil: map[uint32]int64{late: s.begin + 700*ms1}, firstIn: map[uint32]int64{late: s.begin + 950*ms1}}
	for i := range int64(10) {
		s.step(900+30*i, 10, 5) // the first forward pass lasts from 700 on
		s.step(1500+30*i, 10, 5)
	}
	s.slice(950, 1050)
	s.slice(1250, 1450) // of an evaluation of 300 ms
	for _, i := range s.ledger.pending {
		i.attached = []uint32{attached[0], late}
	}
	s.finish(1800)
	w := s.weigh[1](late, simulatedPID, s.begin+1300*ms1).Weight
	if math.Abs(w-1.5) > 0.1 {
		t.Errorf("a call of 200 of the 300 ms of an evaluation stands for %v, want 1.5", w)
	}
}
