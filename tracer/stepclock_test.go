package tracer

import (
	"testing"
	"time"
)

// A step of 400 ms: 100 of the backward pass, with which it begins, 100 of the
// optimizer, 200 of the next forward pass.
const testStep = 400 * time.Millisecond

func testSteps(from time.Time, count int) *stepClock {
	c := newStepClock()
	for i := range count {
		start := from.Add(time.Duration(i) * testStep).UnixNano()
		c.saw(7, start, start+int64(100*time.Millisecond))
	}
	return c
}

func TestEachPlaceOfAStepIsWeighedByHowOftenTheSlicePassedIt(t *testing.T) {
	at := time.Unix(1000, 0)
	mark := func(ms int) sliceMark { return sliceMark{at: at.Add(time.Duration(ms) * time.Millisecond)} }
	c := testSteps(at, 11)
	// From the forward pass of the third step to that of the fifth: two and a half
	// steps, three forward passes of which one is half, two backward ones.
	s := &stretch{on: mark(1000), off: mark(2000), from: mark(0), steps: c.steps()}
	if !s.whole() {
		t.Fatal("a slice of two and a half steps has no whole one")
	}
	type weighed struct {
		what string
		ms   int
		want float64
	}
	check := func(p phases, tests []weighed) {
		t.Helper()
		for _, test := range tests {
			row := at.Add(time.Duration(test.ms) * time.Millisecond).UnixNano()
			if w := p.weight(7, row, s.from.at.UnixNano()); w != test.want {
				t.Errorf("%s: weight %v, want %v", test.what, w, test.want)
			}
		}
	}
	p := s.phases(mark(4000))
	check(p, []weighed{
		{"the forward pass in its first half, seen three times of ten", 1000 + 50, 10. / 3},
		{"the forward pass in its second half, seen three times of ten", 1000 + 150, 10. / 3},
		{"the backward pass, seen twice of ten", 1200 + 50, 10. / 2},
		{"the optimizer, seen twice of ten", 1600 + 150, 10. / 2},
		{"the last forward pass", 1800 + 100, 10. / 3},
	})
	if w := p.weight(8, at.Add(1100*time.Millisecond).UnixNano(), s.from.at.UnixNano()); w != 0 {
		t.Errorf("a process without steps has weight %v", w)
	}
	// A later slice of three quarters of a step, whose rows stand for themselves.
	s.cut = &stretch{on: mark(3200), off: mark(3500)}
	check(s.phases(mark(4000)), []weighed{
		{"a backward pass, of which the cut slice saw one", 1200 + 50, 9. / 2},
		{"the end of a forward pass, of which it saw none", 1000 + 150, 10. / 3},
	})
	// A probe whose rows stand for the last three seconds only.
	if w := p.weight(7, at.Add(1250*time.Millisecond).UnixNano(), at.Add(time.Second).UnixNano()); w != 7./2 {
		t.Errorf("weight %v, want the 7 backward passes from 1 s on, over 2", w)
	}
}

// Whatever part of the steps a slice sees, the weights of what one step does once
// add up to the number of steps.
func TestWeightsOfWholeStepsAddUp(t *testing.T) {
	at := time.Unix(1000, 0)
	const steps = 20
	c := testSteps(at, steps+1)
	for begin := 400; begin < 2000; begin += 37 {
		for length := 400; length < 2900; length += 113 {
			on, off := at.Add(time.Duration(begin)*time.Millisecond), at.Add(time.Duration(begin+length)*time.Millisecond)
			s := &stretch{on: sliceMark{at: on}, off: sliceMark{at: off}, from: sliceMark{at: at}, steps: c.steps()}
			p := s.phases(sliceMark{at: at.Add(steps * testStep)})
			for place := time.Duration(5); place < testStep/time.Millisecond; place += 10 {
				total := 0.0
				for i := range steps {
					call := at.Add(time.Duration(i)*testStep + place*time.Millisecond)
					if !call.Before(on) && call.Before(off) {
						total += p.weight(7, call.UnixNano(), at.UnixNano())
					}
				}
				if total < steps-1e-6 || total > steps+1e-6 {
					t.Fatalf("a slice of %d ms from %d ms on: the calls at %d ms of a step add up to %v, want %d", length, begin, place, total, steps)
				}
			}
		}
	}
}

func TestASliceOfPartOfAStepIsNotWhole(t *testing.T) {
	at := time.Unix(1000, 0)
	mark := func(ms int) sliceMark {
		return sliceMark{at: at.Add(time.Duration(ms) * time.Millisecond), nodes: uint64(ms), counted: true}
	}
	c := testSteps(at, 11)
	g := &governor{session: &Session{probes: &probeTable{}}, nodes: newNodeClock(), steps: c, clock: newJobClock()}
	for _, test := range []struct {
		what    string
		on, off int
		want    unit
	}{
		{"three quarters of a step", 1000, 1300, unitTime},
		{"a step and a half", 1000, 1600, unitPhases},
		{"behind the last step that is known", 9000, 9900, unitTime},
	} {
		s := &stretch{on: mark(test.on), off: mark(test.off), from: mark(0), steps: c.steps()}
		if basis := g.basis(s); basis != test.want {
			t.Errorf("%s, with many nodes, is weighed by unit %d, want %d", test.what, basis, test.want)
		}
	}
}

// A forward pass that waits for its data in some of the steps moves everything behind
// it, as a share of the step; not as a share of what lies between two marks.
func TestPlacesAreFoundBetweenTheMarks(t *testing.T) {
	c := newStepClock()
	begin := int64(1000)
	var optimizers []int64
	for i := range int64(6) {
		c.saw(7, begin, begin+100)
		c.mark(7, begin+110, begin+150)
		optimizers = append(optimizers, begin+130)
		begin += 200 + 300*(i%2) // every second step waits
	}
	b := c.steps()[7]
	on, off := b[1].begin+50, b[3].begin+105 // two whole steps, the end of a third backward pass
	s := &stretch{on: sliceMark{at: time.Unix(0, on)}, off: sliceMark{at: time.Unix(0, off)}, from: sliceMark{at: time.Unix(0, 1000)}, steps: c.steps()}
	if !s.whole() {
		t.Fatal("a slice of two steps and more has no whole one")
	}
	p := s.phases(sliceMark{at: time.Unix(0, b[5].begin)})
	for i, want := range map[int]float64{1: 5. / 2, 2: 5. / 2} {
		if w := p.weight(7, optimizers[i], 1000); w != want {
			t.Errorf("the optimizer of step %d has weight %v, want 5 steps of which 2 were seen", i, w)
		}
	}
	if w := p.weight(7, b[2].begin+75, 1000); w != 5./3 {
		t.Errorf("the second half of a backward pass has weight %v, want 5 steps of which 3 were seen", w)
	}
}

func TestStepsInsideStepsAreNone(t *testing.T) {
	c := newStepClock()
	c.saw(7, 110, 120) // its record comes before that of the one around it
	c.saw(7, 100, 150)
	c.saw(7, 210, 220)
	c.saw(7, 230, 240)
	c.saw(7, 200, 250)
	if got := c.steps()[7]; len(got) != 2 || got[0].begin != 100 || got[1].begin != 200 {
		t.Errorf("the steps are %v, want ones that begin at 100 and 200", got)
	}
	if got := c.longest(); got != 100 {
		t.Errorf("the longest step takes %d ns, want 100", got)
	}
}

func TestTheStepClockForgetsWhatIsLongGone(t *testing.T) {
	c := newStepClock()
	for i := range int64(3 * keptSteps) {
		c.saw(1, i*10, i*10+5)
	}
	if n := len(c.processes[1]); n < keptSteps || n > 2*keptSteps {
		t.Errorf("%d steps are kept, want %d to %d", n, keptSteps, 2*keptSteps)
	}
	for pid := range int32(keptStepping + 10) {
		c.saw(100+pid, int64(1e9)+int64(pid), int64(2e9))
	}
	if n := len(c.processes); n != keptStepping {
		t.Errorf("%d processes are kept, want %d", n, keptStepping)
	}
	if _, ok := c.processes[1]; ok {
		t.Error("the process whose last step is the oldest is still there")
	}
}
