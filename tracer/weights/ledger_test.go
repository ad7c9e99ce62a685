package weights

import (
	"math"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// ms1 is a millisecond.
const ms1 = int64(time.Millisecond)

// simulation is a process whose steps are known, and a Ledger that shares out slices
// of it which a test made.
type simulation struct {
	gauge  *Gauge
	ledger *Ledger
	slices []event.Slice
	weigh  []Weigher
	begin  int64
}

// oneGroup is a table of probes that are all of one group.
type oneGroup struct {
	noProbes
	unusedUntil, firstIn map[uint32]int64
}

func (g oneGroup) Probe(index uint32) Probe {
	return Probe{Index: index, Group: "op", UnusedUntil: g.unusedUntil[index], FirstIn: g.firstIn[index]}
}

type simulatedRows struct{ s *simulation }

func (r simulatedRows) Weigh(_ uint32, _ int64, slices []event.Slice, weigh Weigher, _ func(map[uint32]float64)) {
	r.s.slices = append(r.s.slices, slices...)
	if weigh != nil {
		r.s.weigh = append(r.s.weigh, weigh)
	}
}

const simulatedPID = 7

var attached = []uint32{1}

func simulate() *simulation {
	s := &simulation{gauge: testGauge(oneGroup{}), begin: time.Unix(1000, 0).UnixNano()}
	s.ledger = NewLedger(s.gauge, simulatedRows{s}, Thinned{}, func(event.Warning) {})
	s.ledger.Begin(time.Unix(0, s.begin))
	return s
}

// step is one that begins a time after the recording, in ms, with its backward pass;
// the optimizer follows.
func (s *simulation) step(at, backward, optimizer int64) {
	begin := s.begin + at*ms1
	s.gauge.Steps.Saw(simulatedPID, begin, begin+backward*ms1)
	s.gauge.Steps.Mark(simulatedPID, begin+(backward+1)*ms1, begin+(backward+optimizer)*ms1)
}

// slice is one from a time to another, ms.
func (s *simulation) slice(on, off int64) {
	at := func(ms int64) Mark { return Mark{At: time.Unix(0, s.begin+ms*ms1)} }
	s.ledger.pending = append(s.ledger.pending, &interval{on: at(on), off: at(off), over: true, attached: attached,
		processes: []int{simulatedPID}})
}

// finish ends the recording and says what a call in each slice stands for.
func (s *simulation) finish(end int64) func(slice int, at int64) Share {
	to := s.begin + end*ms1
	s.ledger.Settle(time.Unix(0, to), to, attached)
	return func(slice int, at int64) Share {
		return s.weigh[slice](1, simulatedPID, s.begin+at*ms1)
	}
}

// represented is all that the slices of a phase stand for.
func (s *simulation) represented(phase string) (sum float64) {
	for _, row := range s.slices {
		if row.Phase == phase {
			sum += row.Represented
		}
	}
	return sum
}

// A run of 900 ms of imports, 10 steps of 30 ms, 300 ms of evaluation, 10 steps more and
// 100 ms of good-byes, of which slices saw some of each but the last, which is too short
// to count by itself.
func TestEveryStepBelongsToASlice(t *testing.T) {
	s := simulate()
	// A step: 10 ms forward, 10 backward, 5 optimizer, 5 nothing.
	for i := range int64(10) {
		s.step(910+30*i, 10, 5)
		s.step(1510+30*i, 10, 5)
	}
	s.slice(900, 985)   // almost three steps from the first on
	s.slice(1260, 1300) // of the evaluation
	s.slice(1600, 1675)
	weigh := s.finish(1900)
	if n := s.represented(event.PhaseTraining); n != 20 {
		t.Errorf("the slices stand for %v training steps, want 20", n)
	}
	// Each of these happens once a step: the weights of what the slices saw of it add up.
	for what, offset := range map[string]int64{"forward": -5, "backward": 5, "optimizer": 13} {
		sum := 0.0
		for i := range int64(10) {
			for _, first := range []int64{910, 1510} {
				at := first + 30*i + offset
				switch {
				case at >= 900 && at < 985:
					sum += weigh(0, at).Weight
				case at >= 1600 && at < 1675:
					sum += weigh(2, at).Weight
				}
			}
		}
		if math.Abs(sum-20) > 0.01 {
			t.Errorf("%s: what the slices saw stands for %v calls, want 20", what, sum)
		}
	}
	// Between 1,195 and 1,500 ms no step is under way, before 900 neither.
	if ns := s.represented(event.PhaseOther) / float64(ms1); math.Abs(ns-(900+305)) > 15 {
		t.Errorf("the slices stand for %v ms besides, want 1205", ns)
	}
	if w := weigh(1, 1280); w.Slice == 0 || w.Step == 0 || w.Weight < 10 {
		t.Errorf("a call of the evaluation is %+v", w)
	}
}

// Whatever part of the steps two slices see, the weights of what one step does once add
// up to the number of steps, and so does what they represent.
func TestWeightsOfWholeStepsAddUp(t *testing.T) {
	const steps, length = 40, 30
	for begin := int64(200); begin < 260; begin += 7 {
		for width := int64(35); width < 200; width += 23 {
			s := simulate()
			for i := range int64(steps) {
				s.step(10+length*i, 10, 5)
			}
			s.slice(begin, begin+width)
			s.slice(begin+600, begin+600+width)
			weigh := s.finish(10 + length*steps)
			if n := s.represented(event.PhaseTraining); n != steps {
				t.Fatalf("slices of %d ms from %d ms on stand for %v steps, want %d", width, begin, n, steps)
			}
			for place := int64(1); place < length; place += 4 {
				sum := 0.0
				for i := range int64(steps) {
					at := 10 + length*i + place
					switch {
					case at >= begin && at < begin+width:
						sum += weigh(0, at).Weight
					case at >= begin+600 && at < begin+600+width:
						sum += weigh(1, at).Weight
					}
				}
				if math.Abs(sum-steps) > 1.01 { // a recording ends in the middle of a step
					t.Fatalf("slices of %d ms from %d ms on: the calls at %d ms of a step add up to %v, want %d", width, begin, place, sum, steps)
				}
			}
		}
	}
}

// A slice of less than a step leaves its part of the run to others; without others it
// stands for it by itself.
func TestASliceOfPartOfAStepStandsForItself(t *testing.T) {
	s := simulate()
	for i := range int64(20) {
		s.step(10+30*i, 10, 5)
	}
	s.slice(100, 170)
	s.slice(400, 420)
	weigh := s.finish(610)
	if w := weigh(1, 410); w != alone {
		t.Errorf("a call of the short slice is %+v, want one that stands for itself", w)
	}
	if n := s.represented(event.PhaseTraining); n != 20 {
		t.Errorf("the other stands for %v steps, want 20", n)
	}
	only := simulate()
	for i := range int64(20) {
		only.step(10+30*i, 10, 5)
	}
	only.slice(100, 120)
	if w := only.finish(610)(0, 110); w.Weight < 20 || w.Slice == 0 {
		t.Errorf("a call of the only slice is %+v", w)
	}
}

// A slice that saw less than a step, before the first that saw more: what it recorded of
// the step is counted once. A probe that was not in it has the step counted by the other.
func TestWhatAShortSliceRecordedIsCountedOnce(t *testing.T) {
	const late = 2
	s := simulate()
	for i := range int64(20) {
		s.step(10+30*i, 10, 5)
	}
	s.slice(8, 30)
	s.slice(38, 188)
	s.ledger.pending[1].attached = []uint32{attached[0], late}
	weigh := s.finish(610)
	early, others := weigh(0, 15).Weight, 0.0
	lates := 0.0
	for i := range int64(5) {
		others += weigh(1, 45+30*i).Weight
		lates += s.weigh[1](late, simulatedPID, s.begin+(45+30*i)*ms1).Weight
	}
	if sum := early + others; early != 1 || math.Abs(sum-20) > 0.01 {
		t.Errorf("the backward pass in the short slice stands for %v, with the others for %v, want 1 and 20", early, sum)
	}
	if math.Abs(lates-20) > 0.01 {
		t.Errorf("those of a probe that was in the other alone stand for %v, want 20", lates)
	}
}

// What the job calls for the first time in the tenth step was in none before, and what it
// first calls after 300 ms of something else in none of that.
func TestWhatWasNotUsedBeforeIsNotCountedBefore(t *testing.T) {
	const late, lateOther = 2, 3
	s := simulate()
	s.gauge.probes = oneGroup{unusedUntil: map[uint32]int64{late: s.begin + 900*ms1 + 10*30*ms1, lateOther: s.begin + 300*ms1}}
	for i := range int64(20) {
		s.step(910+30*i, 10, 5)
	}
	s.slice(500, 600)
	s.slice(1200, 1290)
	for _, i := range s.ledger.pending {
		i.attached = []uint32{attached[0], late, lateOther}
	}
	s.finish(910 + 600)
	lates, others := 0.0, 0.0
	for i := range int64(3) {
		at := s.begin + (1215+30*i)*ms1 // in the backward passes of steps 11 to 13
		lates += s.weigh[1](late, simulatedPID, at).Weight
		others += s.weigh[1](attached[0], simulatedPID, at).Weight
	}
	if math.Abs(lates-10) > 0.1 || math.Abs(others-20) > 0.1 {
		t.Errorf("the calls of the late one stand for %v, those of another for %v, want 10 and 20", lates, others)
	}
	at := s.begin + 550*ms1
	if w, other := s.weigh[0](lateOther, simulatedPID, at).Weight, s.weigh[0](attached[0], simulatedPID, at).Weight; math.Abs(w-6) > 0.2 ||
		math.Abs(other-9) > 0.2 {
		t.Errorf("besides, a call of the late one stands for %v, one of another for %v, want 6 and 9", w, other)
	}
	unknown := simulate()
	unknown.gauge.probes = oneGroup{unusedUntil: map[uint32]int64{late: unknown.begin + 300*ms1}}
	unknown.slice(500, 600)
	unknown.ledger.pending[0].attached = []uint32{attached[0], late}
	unknown.finish(1000)
	at = unknown.begin + 550*ms1
	if w, other := unknown.weigh[0](late, simulatedPID, at).Weight, unknown.weigh[0](attached[0], simulatedPID, at).Weight; w != 7 ||
		other != 10 {
		t.Errorf("without steps a call of the late one stands for %v, one of another for %v, want 7 and 10", w, other)
	}
}

// What the job begins to call is seen a moment later, and recorded by the next slice. The one
// that was under way meanwhile does not stand for its calls.
func TestCallsBeforeTheFirstSliceOfAProbeAreStoodFor(t *testing.T) {
	const late = 2
	s := simulate()
	s.gauge.probes = oneGroup{unusedUntil: map[uint32]int64{late: s.begin + 5*ms1}, firstIn: map[uint32]int64{late: s.begin + 100*ms1}}
	for i := range int64(20) {
		s.step(10+30*i, 10, 5)
	}
	s.slice(0, 100)
	s.slice(100, 250)
	s.slice(400, 500)
	for _, i := range s.ledger.pending[1:] {
		i.attached = []uint32{attached[0], late}
	}
	s.finish(610)
	lates, others := 0.0, 0.0
	for i := range int64(20) {
		at := 15 + 30*i
		for slice, bounds := range [][2]int64{{0, 100}, {100, 250}, {400, 500}} {
			if at < bounds[0] || at >= bounds[1] {
				continue
			}
			others += s.weigh[slice](attached[0], simulatedPID, s.begin+at*ms1).Weight
			if slice > 0 {
				lates += s.weigh[slice](late, simulatedPID, s.begin+at*ms1).Weight
			}
		}
	}
	if math.Abs(lates-20) > 0.01 || math.Abs(others-20) > 0.01 {
		t.Errorf("calls of the late probe add up to %v, of the other to %v, want 20 each", lates, others)
	}
}

// A script makes the gradients zero before each forward pass, and evaluates between two
// steps: that lies between two calls of the optimizer, and is no part of a step.
func TestAnEvaluationBeforeTheGradientsAreMadeZeroIsNoStep(t *testing.T) {
	s := simulate()
	// A step: 5 ms nothing, 2 zeroing, 8 forward, 10 backward, 5 optimizer.
	step := func(at int64) {
		s.gauge.Steps.Mark(simulatedPID, s.begin+(at-10)*ms1, s.begin+(at-8)*ms1)
		s.step(at, 10, 5)
	}
	for i := range int64(10) {
		step(910 + 30*i)
	}
	for i := range int64(10) {
		step(1510 + 30*i)
	}
	s.slice(880, 960)
	s.slice(1150, 1600) // all of the evaluation, 1,195 to 1,500 ms, too
	weigh := s.finish(1900)
	if n := s.represented(event.PhaseTraining); n != 20 {
		t.Errorf("the slices stand for %v training steps, want 20", n)
	}
	if ns := s.represented(event.PhaseOther) / float64(ms1); math.Abs(ns-(900+300)) > 25 {
		t.Errorf("the slices stand for %v ms besides, want 1200", ns)
	}
	if w := weigh(1, 1300).Weight; w > 3.5 {
		t.Errorf("a call of the evaluation, which was seen whole, stands for %v, as those of the steps do", w)
	}
	sum := 0.0
	for i := range int64(10) {
		for _, first := range []int64{910, 1510} {
			switch at := first + 30*i - 5; { // the forward pass
			case at >= 880 && at < 960:
				sum += weigh(0, at).Weight
			case at >= 1150 && at < 1600:
				sum += weigh(1, at).Weight
			}
		}
	}
	if math.Abs(sum-20) > 0.01 {
		t.Errorf("what the slices saw of forward passes stands for %v, want 20", sum)
	}
}

// What no slice saw has a row that says so.
func TestAStretchThatNoSliceSawIsTold(t *testing.T) {
	s := simulate()
	for i := range int64(10) {
		s.step(10+30*i, 10, 5)
	}
	s.slice(50, 150)
	s.finish(2000) // 1.7 s without steps
	for _, row := range s.slices {
		if row.Phase == event.PhaseOther && row.Recorded == 0 && row.Represented > float64(1600*ms1) {
			return
		}
	}
	t.Errorf("no row for the time behind the last step: %+v", s.slices)
}

// The first step of a job takes long, and tells nothing of the others.
func TestALongFirstStepCountsOnce(t *testing.T) {
	s := simulate()
	s.step(500, 400, 20)
	for i := range int64(19) {
		s.step(1000+30*i, 10, 5)
	}
	s.slice(1100, 1190)
	weigh := s.finish(1000 + 19*30)
	if n := s.represented(event.PhaseTraining); n != 20 {
		t.Errorf("the slice stands for %v steps, want 20", n)
	}
	if w := weigh(0, 1125); math.Abs(w.Weight-20./3) > 0.5 {
		t.Errorf("a backward pass stands for %v, want a third of 20", w.Weight)
	}
}

func TestPausesAreSharedInTheMiddle(t *testing.T) {
	s := simulate()
	s.slice(100, 200)
	s.slice(1000, 1100)
	weigh := s.finish(2000)
	if w := weigh(0, 150).Weight; w != 6 { // 0 to 600 ms
		t.Errorf("the first slice's calls stand for %v, want 6", w)
	}
	if w := weigh(1, 1050).Weight; w != 14 {
		t.Errorf("the last slice's calls stand for %v, want 14", w)
	}
	if ns := s.represented(event.PhaseOther); ns != float64(2000*ms1) {
		t.Errorf("they stand for %v ns, want all 2 s", ns)
	}
}
