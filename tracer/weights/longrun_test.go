package weights

import (
	"math"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// until lets the simulated job go on up to a time, ms: steps of a millisecond, and none
// within the breaks, in each of which it evaluates.
func (s *simulation) until(from, to int64, breaks ...[2]int64) (steps int) {
	for at := from; at < to; at++ {
		resting := false
		for _, b := range breaks {
			resting = resting || at >= b[0] && at < b[1]
			if at == b[0] {
				s.gauge.Steps.Load(simulatedPID, s.begin+(at+1)*ms1)
			}
		}
		if !resting {
			begin := s.begin + at*ms1
			s.gauge.Steps.Saw(simulatedPID, begin, begin+ms1/2)
			s.gauge.Steps.Mark(simulatedPID, begin+ms1*6/10, begin+ms1*9/10)
			steps++
		}
	}
	return steps
}

// The slices of a recording's first half minute wait for its end. By then a job of short
// steps has made tens of thousands, and each belongs to a slice: none of that time passes
// for one without training.
func TestTensOfThousandsOfStepsWaitForTheirSlices(t *testing.T) {
	s := simulate()
	steps := s.until(0, 25_000)
	for at := int64(500); at < 25_000; at += 5000 {
		s.slice(at, at+20)
	}
	weigh := s.finish(25_000)
	if n := s.represented(event.PhaseTraining); n != float64(steps) {
		t.Errorf("the slices stand for %v training steps, want %d", n, steps)
	}
	if ns := s.represented(event.PhaseOther); ns != 0 {
		t.Errorf("they stand for %v ms of something else", ns/float64(ms1))
	}
	if w := weigh(0, 510); w.Slice == 0 || math.Abs(w.Weight-150) > 20 {
		t.Errorf("a call of the first slice is %+v, want one for some 150", w)
	}
}

// Over minutes steps that were shared out are let go; what the job did between them, and
// no slice saw, is stood for by the first slice that sees the like.
func TestWhatIsLetGoIsStoodFor(t *testing.T) {
	s := simulate()
	breaks := [][2]int64{{20_000, 22_000}, {100_000, 102_000}}
	steps, slice := 0, int64(1000)
	for now := int64(0); now < 120_000; now += 200 {
		steps += s.until(now, now+200, breaks...)
		if slice+50 < now+200 {
			s.slice(slice, slice+50)
			slice += 7000
		}
		if now == 100_400 {
			s.slice(100_500, 100_600)
			slice = now + 2500
		}
		s.ledger.Settle(time.Unix(0, s.begin+(now+200)*ms1), 0, attached)
		if n := s.gauge.Steps.Steps()[simulatedPID].Count(); now > 50_000 && n > 20_000 {
			t.Fatalf("%d steps are kept after %d ms", n, now)
		}
	}
	s.finish(120_000)
	if n := s.represented(event.PhaseTraining); n != float64(steps) {
		t.Errorf("the slices stand for %v training steps, want %d", n, steps)
	}
	if ns := s.represented(event.PhaseEvaluation) / float64(ms1); math.Abs(ns-4000) > 20 {
		t.Errorf("they stand for %v ms of evaluation, want 4000", ns)
	}
	if ns := s.represented(event.PhaseOther) / float64(ms1); ns > 20 {
		t.Errorf("they stand for %v ms of something else", ns)
	}
}

// A thread that stands still for 30 ms in the middle of a step of 2 ms, as on a virtual
// machine whose host is busy, does nothing else there: what each step does once is counted
// once, and no time passes for a phase of its own.
func TestAStallIsNoPhase(t *testing.T) {
	s := simulate()
	var places []int64 // of something that each step does once, ns since the beginning
	steps, at := 0, int64(0)
	for ; at < 10_000*ms1; steps++ {
		length := 2 * ms1
		if steps%7 == 3 {
			length += 30 * ms1
		}
		s.gauge.Steps.Saw(simulatedPID, s.begin+at, s.begin+at+ms1/2)
		s.gauge.Steps.Mark(simulatedPID, s.begin+at+ms1*6/10, s.begin+at+ms1*9/10)
		places = append(places, at+ms1/4)
		at += length
	}
	for from := int64(500); from < 10_000; from += 2000 {
		s.slice(from, from+150)
	}
	s.finish(at / ms1)
	if n := s.represented(event.PhaseTraining); n != float64(steps) {
		t.Errorf("the slices stand for %v training steps, want %d", n, steps)
	}
	if ns := s.represented(event.PhaseOther); ns != 0 {
		t.Errorf("they stand for %v ms of something else", ns/float64(ms1))
	}
	sum := 0.0
	for _, place := range places {
		if k := (place/ms1 - 500) / 2000; place/ms1 >= 500 && (place/ms1-500)%2000 < 150 && k < 5 {
			sum += s.weigh[k](1, simulatedPID, s.begin+place).Weight
		}
	}
	if math.Abs(sum/float64(steps)-1) > 0.02 {
		t.Errorf("what each step does once is counted %v times, want %d", sum, steps)
	}
}

// A step that stands still for longer than two others take, between its backward pass and
// its optimizer's, is one step: what its optimizer did is in it.
func TestAStepThatStandsStillBeforeItsOptimizerIsOneStep(t *testing.T) {
	s := simulate()
	steps, at, slow := 0, int64(0), int64(0)
	for ; at < 10_000*ms1; steps++ {
		late := int64(0)
		if steps == 7 { // in the first slice
			late, slow = 400*ms1, at
		}
		s.gauge.Steps.Saw(simulatedPID, s.begin+at, s.begin+at+50*ms1)
		s.gauge.Steps.Mark(simulatedPID, s.begin+at+60*ms1+late, s.begin+at+90*ms1+late)
		at += 100*ms1 + late
	}
	for from := int64(500); from < 10_000; from += 2000 {
		s.slice(from, from+1100)
	}
	s.finish(at / ms1)
	if n := s.represented(event.PhaseTraining); n != float64(steps) {
		t.Errorf("the slices stand for %v training steps, want %d", n, steps)
	}
	if ns := s.represented(event.PhaseOther); ns != 0 {
		t.Errorf("they stand for %v ms of something else", ns/float64(ms1))
	}
	backward, optimizer := s.weigh[0](1, simulatedPID, s.begin+slow+25*ms1).Weight, s.weigh[0](1, simulatedPID, s.begin+slow+475*ms1).Weight
	if math.Abs(optimizer/backward-1) > 0.1 {
		t.Errorf("its optimizer's calls stand for %v each, those of its backward pass for %v", optimizer, backward)
	}
}

// Where no slice is weighed, no step is kept for one.
func TestWithoutSlicesNoStepIsKept(t *testing.T) {
	s := simulate()
	s.gauge.Steps.Forget(math.MaxInt64)
	s.gauge.Steps.Forget(s.begin) // a group is given up
	s.until(0, 1000)
	if n := len(s.gauge.Steps.Steps()); n != 0 {
		t.Errorf("the steps of %d processes are kept", n)
	}
}

// The pauses within a small budget are so long that a recording ends in one. What came between
// that and the last slice of steps is a slice of an evaluation: the steps behind it belong to the
// slice of steps all the same, which waits for that.
func TestStepsBehindTheLastSliceOfStepsBelongToIt(t *testing.T) {
	const end = 80_000
	s := simulate()
	evaluation := [2]int64{50_000, 51_000}
	steps := 0
	for now := int64(0); now < end; now += 200 {
		steps += s.until(now, now+200, evaluation)
		switch now {
		case 2_000, 10_000, 40_000:
			s.slice(now+20, now+70)
		case 50_400:
			s.slice(50_450, 50_550)
		}
		s.ledger.Settle(time.Unix(0, s.begin+(now+200)*ms1), 0, attached)
	}
	s.finish(end)
	if n := s.represented(event.PhaseTraining); n != float64(steps) {
		t.Errorf("the slices stand for %v training steps, want %d", n, steps)
	}
	for _, row := range s.slices {
		if row.Recorded == 0 {
			t.Errorf("no slice saw %+v", row)
		}
	}
	// It does not wait for ever, and not with too many rows.
	for name, rows := range map[string]uint64{"after minutes": 1, "with many rows": keepRows + 1} {
		s := simulate()
		s.until(0, 200, [2]int64{})
		s.slice(20, 70)
		s.ledger.pending[0].seen = map[uint32]uint64{1: rows}
		s.until(40_000, 40_200, [2]int64{})
		s.slice(40_300, 40_350) // of nothing
		s.ledger.Settle(time.Unix(0, s.begin+45_000*ms1), 0, attached)
		if waits := len(s.weigh) == 0; waits != (rows == 1) {
			t.Errorf("%s: waits %v", name, waits)
		}
		s.ledger.Settle(time.Unix(0, s.begin+70*ms1).Add(keepTraining), 0, attached)
		if len(s.weigh) == 0 {
			t.Errorf("%s: the slice of steps still waits", name)
		}
	}
}
