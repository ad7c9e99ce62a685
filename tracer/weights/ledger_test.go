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
type oneGroup struct{ noProbes }

func (oneGroup) Probe(index uint32) Probe { return Probe{Index: index, Group: "op"} }

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
	s.ledger = NewLedger(s.gauge, simulatedRows{s}, func(event.Warning) {})
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
	s.ledger.pending = append(s.ledger.pending, &interval{on: at(on), off: at(off), over: true, attached: attached, processes: []int{simulatedPID}})
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
