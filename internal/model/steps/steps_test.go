package steps

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// tape is a thread whose anchors come one after another.
type tape struct {
	anchors []Anchor
	now     int64
	random  *rand.Rand
}

func newTape(seed uint64) *tape { return &tape{random: rand.New(rand.NewPCG(seed, 2))} }

// add appends anchors by their letters; each takes between 5 and 15 and is
// followed by as much.
func (t *tape) add(letters string) {
	for _, c := range []byte(letters) {
		t.wait(10)
		begin := t.now
		t.wait(10)
		t.anchors = append(t.anchors, Anchor{Class: Class(c), Begin: begin, End: t.now})
	}
}

func (t *tape) wait(about int64) { t.now += about + t.random.Int64N(about/2+1) - about/4 }

func counts(all []Step) map[Kind]int {
	n := map[Kind]int{}
	for _, s := range all {
		n[s.Kind]++
	}
	return n
}

func TestStepsOfSyntheticLoopsAreCountedExactly(t *testing.T) {
	for _, c := range []struct {
		name            string
		loop            string // of which the tape is made
		train, evaluate int
		anchors         string // of the most steps
	}{
		{"plain", strings.Repeat("LBO", 50), 50, 0, "LBO"},
		{"no loader", strings.Repeat("BO", 50), 50, 0, "BO"},
		{"torch 1.13 without scopes", strings.Repeat("B", 50), 50, 0, "B"},
		{"accumulation of 4", strings.Repeat("LBLBLBLBO", 30), 30, 0, "LBLBLBLBO"},
		{"accumulation of 32, longer than ten micro-batches", strings.Repeat(strings.Repeat("LB", 32)+"O", 12), 12, 0,
			strings.Repeat("LB", 32) + "O"},
		{"batch loaded ahead", "L" + strings.Repeat("BOL", 40), 40, 0, "LBO"},
		{"two optimizers", strings.Repeat("LBOBO", 40), 40, 0, "LBOBO"},
		{"backward passes of a pipeline", strings.Repeat("LLBBO", 40), 40, 0, "LLBBO"},
		{"inference", strings.Repeat("L", 60), 0, 60, "L"},
		{"executions", strings.Repeat("X", 60), 60, 0, "X"},
		{"loader and executions", strings.Repeat("LX", 60), 60, 0, "LX"},
		{"short recording", strings.Repeat("LBO", 4), 4, 0, "LBO"},
		// Epochs of 20 batches and an end of the loader; evaluations of 7 and an end.
		{"epochs with evaluation", strings.Repeat(strings.Repeat("LBO", 20)+strings.Repeat("L", 9), 5), 100, 35, "LBO"},
		{"epochs", strings.Repeat(strings.Repeat("LBO", 20)+"L", 5), 100, 0, "LBO"},
		{"a last, shorter accumulation", strings.Repeat(strings.Repeat("LBLBLBO", 15)+"LBO"+"L", 3), 48, 0, "LBLBLBO"},
		{"epochs of fewer than ten steps, the last one shorter",
			strings.Repeat(strings.Repeat("LBLBLBLBO", 7)+"LBLBO"+"L", 4), 32, 0,
			"LBLBLBLBO"},
		{"two optimizers in epochs of fifteen", strings.Repeat(strings.Repeat("LBOBO", 15)+"L", 4), 60, 0, "LBOBO"},
		{"an optimizer that steps once", "O" + strings.Repeat("LB", 40), 40, 0, "LB"},
		{"scopes in slices", strings.Repeat("LBO", 30) + "L" + strings.Repeat("B", 50) + "O" + strings.Repeat("LBO", 20), 100, 0, "LBO"},
		{"scopes in slices, accumulation", strings.Repeat("LBLBO", 15) + strings.Repeat("BB", 20) + strings.Repeat("LBLBO", 15), 50, 0,
			"LBLBO"},
		{"another loop after 20 steps", strings.Repeat("LBO", 20) + strings.Repeat("LBBO", 120), 140, 0, "LBBO"},
	} {
		for seed := range uint64(5) {
			tape := newTape(seed)
			tape.add(c.loop)
			all := Find(tape.anchors)
			n := counts(all)
			most := map[string]int{}
			for _, s := range all {
				most[s.Anchors]++
			}
			if n[Train]+n[Warmup] != c.train || n[Evaluate] != c.evaluate {
				t.Errorf("%s: %v, want %d training and %d evaluation steps", c.name, n, c.train, c.evaluate)
			}
			for anchors, k := range most {
				if k > most[c.anchors] {
					t.Errorf("%s: most steps are %q, not %q", c.name, anchors, c.anchors)
				}
			}
		}
	}
}

// Whatever a thread did, each of its anchors is in exactly one step, and the
// periods add up.
func TestStepsCoverAllAnchorsOnce(t *testing.T) {
	for seed := range uint64(200) {
		tape := newTape(seed)
		r := tape.random
		for range 1 + r.IntN(5) {
			loop := []string{"LBO", "LBLBO", "BO", "L", "B", "LX"}[r.IntN(6)]
			tape.add(strings.Repeat(loop, r.IntN(40)))
			for range r.IntN(4) {
				tape.add(string("LBOX"[r.IntN(4)]))
			}
		}
		all := Find(tape.anchors)
		if all == nil {
			continue
		}
		n := 0
		for i, s := range all {
			n += len(s.Anchors)
			switch {
			case s.End < s.Begin:
				t.Fatalf("seed %d: step %d ends before it begins", seed, i)
			case i+1 < len(all) && s.Begin+s.Period != all[i+1].Begin:
				t.Fatalf("seed %d: step %d and its period do not reach the next", seed, i)
			case i+1 == len(all) && s.Period != -1:
				t.Fatalf("seed %d: the last step has a period", seed)
			}
		}
		if n != len(tape.anchors) {
			t.Fatalf("seed %d: %d anchors in steps, %d on the tape", seed, n, len(tape.anchors))
		}
	}
}

func TestPeriodHoldsWhatDurationLeavesOut(t *testing.T) {
	var anchors []Anchor
	for i := range int64(20) { // torch 1.13: a step of 1000, of which the backward pass takes 300
		anchors = append(anchors, Anchor{Class: Backward, Begin: i*1000 + 500, End: i*1000 + 800})
	}
	for i, s := range Find(anchors)[:19] {
		if s.Period != 1000 || s.Duration() != 300 {
			t.Errorf("step %d: period %d, duration %d", i, s.Period, s.Duration())
		}
	}
}

func TestWarmupEndsWithThreeStepsNearTheMedian(t *testing.T) {
	var anchors []Anchor
	now := int64(0)
	for i := range 40 {
		length := int64(1000)
		switch i {
		case 0, 1, 4:
			length = 5000
		}
		anchors = append(anchors, Anchor{Class: Backward, Begin: now, End: now + 10})
		now += length
	}
	for i, s := range Find(anchors) {
		if want := map[bool]Kind{true: Warmup, false: Train}[i < 5]; s.Kind != want {
			t.Errorf("step %d is %s, want %s", i, s.Kind, want)
		}
	}
}

func TestAnchorsWithinOthersAndWeakerOnesDoNotCount(t *testing.T) {
	var anchors []Anchor
	for i := range int64(20) {
		at := i * 100
		anchors = append(anchors,
			Anchor{Class: Scope, Name: "mine", Begin: at, End: at + 90},
			Anchor{Class: Backward, Begin: at + 10, End: at + 50},
			Anchor{Class: Backward, Begin: at + 20, End: at + 30}, // a checkpoint's
			Anchor{Class: Collective, Name: "all_reduce", Begin: at + 60, End: at + 70})
	}
	if n := counts(Find(anchors)); n[Train] != 20 || len(n) != 1 {
		t.Errorf("got %v", n)
	}
	collectives := Relevant(anchors[:0:0])
	for _, a := range anchors {
		if a.Class != Backward {
			collectives = append(collectives, a)
		}
	}
	all := Find(collectives)
	if len(all) != 20 || all[0].Anchors != "C" {
		t.Errorf("without the backward passes: %d steps, the first of %q", len(all), all[0].Anchors)
	}
}

func TestProgramsAreToldApartByName(t *testing.T) {
	var anchors []Anchor
	for i := range int64(90) {
		name := "init"
		if i%3 == 2 {
			name = "update"
		}
		anchors = append(anchors, Anchor{Class: Execute, Name: name, Begin: i * 10, End: i*10 + 5})
	}
	if n := counts(Find(anchors)); n[Train] != 30 {
		t.Errorf("got %v, want 30 steps of three executions", n)
	}
}

// Online the sequence holds from the tenth time on, and is learnt again once
// 200 anchors have not completed it.
func TestDetectorLearnsAfterTenAndAgainAfterTwoHundred(t *testing.T) {
	var d Detector
	push := func(letters string) (completed int) {
		for _, c := range []byte(letters) {
			if d.Push(Anchor{Class: Class(c)}) {
				completed++
			}
		}
		return completed
	}
	if push(strings.Repeat("LBO", 9)); d.Sequence() != "" {
		t.Errorf("learnt %q after nine", d.Sequence())
	}
	if push("LBO"); d.Sequence() != "LBO" {
		t.Errorf("learnt %q after ten", d.Sequence())
	}
	if n := push(strings.Repeat("LBO", 5)); n != 5 {
		t.Errorf("%d of five steps", n)
	}
	if n := push("LB" + "LBO"); n != 1 {
		t.Errorf("%d steps of a broken one and a good one", n)
	}
	if push(strings.Repeat("L", 199)); d.Sequence() != "LBO" {
		t.Errorf("forgot it after 199: %q", d.Sequence())
	}
	if push("L"); d.Sequence() != "" {
		t.Errorf("kept %q after 200", d.Sequence())
	}
	if push(strings.Repeat("LBBO", 11)); d.Sequence() != "LBBO" {
		t.Errorf("learnt %q", d.Sequence())
	}
}

// Both numbers may be others, and are after it has learnt anew.
func TestADetectorsNumbersAreItsOwn(t *testing.T) {
	d := Detector{Repeats: 3, Patience: 20}
	push := func(letters string) {
		for _, c := range []byte(letters) {
			d.Push(Anchor{Class: Class(c)})
		}
	}
	for range 2 {
		if push("LBOLBO"); d.Sequence() != "" {
			t.Errorf("learnt %q after two", d.Sequence())
		}
		if push("LBO"); d.Sequence() != "LBO" {
			t.Errorf("learnt %q after three", d.Sequence())
		}
		if push(strings.Repeat("L", 20)); d.Sequence() != "" {
			t.Errorf("kept %q after 20", d.Sequence())
		}
		push("BO") // ends what was begun
	}
}

// The quantiles are R's: qt(0.975, df).
func TestQuantilesAreThoseOfStudentsT(t *testing.T) {
	for freedom, want := range map[int]float64{1: 12.706, 9: 2.262, 10: 2.228, 18: 2.101, 30: 2.042, 1000: 1.962} {
		if got := Quantile(freedom); math.Abs(got-want) > 0.003 {
			t.Errorf("%d degrees of freedom: %v, want %v", freedom, got, want)
		}
	}
}

// An optimizer's step that is seen once and never again, since it is not recorded any
// more, does not keep what is left from being a step.
func TestWhatClosedAStepOnceDoesNotHaveTo(t *testing.T) {
	var d Detector
	completed := 0
	for i := range int64(3 * patience) {
		if i == 5 {
			d.Push(Anchor{Class: Optimize, Begin: 100*i - 50, End: 100*i - 40})
		}
		if d.Push(Anchor{Class: Backward, Begin: 100 * i, End: 100*i + 10}) {
			completed++
		}
	}
	if d.Sequence() != "B" || completed < patience {
		t.Errorf("sequence %q, %d steps", d.Sequence(), completed)
	}
}
