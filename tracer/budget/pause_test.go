package budget

import (
	"math"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/progress"
)

func TestThePauseIsOfTheJobsTime(t *testing.T) {
	a := testGovernor().account
	a.budget, a.spent = 0.01, 10*time.Millisecond
	a.clock.Own, a.clock.Share = 400*time.Millisecond, 1
	if pause := a.untilPaid(); pause != 600*time.Millisecond {
		t.Errorf("with a core of its own: %s, want 600ms: 10 ms are 1 %% of a second", pause)
	}
	a.clock.Share = 0.5
	if pause := a.untilPaid(); pause != 1200*time.Millisecond {
		t.Errorf("with half a core: %s, want 1.2s", pause)
	}
}

// A pause that began while others had the CPUs is over when the job has had the time that
// pays for it, and not before that where they take them later.
func TestThePauseFollowsTheJobsShareOfTheTime(t *testing.T) {
	const s = time.Second
	began := time.Now()
	waited := time.Duration(0)
	a := &account{joints: &joints{job: oneProcess{}}, budget: 0.01, spent: 30 * time.Millisecond, clock: progress.NewJobClock()}
	a.clock.Waits = func(int32) (time.Duration, bool) { return waited, true }
	a.tick(began.Add(-s))
	waited = 9 * s / 10 // of the first second
	a.tick(began)
	until := began.Add(a.untilPaid()) // 2.9 s of the job, which has a tenth of the time
	if left := until.Sub(began); left < 28*s || left > 30*s {
		t.Fatalf("the pause begins with %s", left)
	}
	over := time.Duration(0)
	for at := s; over == 0 && at < 30*s; at += s / 2 { // it has a core of its own now
		if a.paid(began.Add(at), &until) {
			over = at
		}
	}
	if over < 5*s/2 || over > 4*s {
		t.Errorf("the pause was over after %s, 2.9 s pay for it", over)
	}
	a.spent, until = 100*time.Millisecond, began.Add(over+s)
	waited += s
	if a.paid(began.Add(over+s+s/2), &until) {
		t.Error("the pause is over, and nothing has paid for it")
	}
}

// oneProcess is a job of one.
type oneProcess struct{ noJob }

func (oneProcess) Processes() []int { return []int{1} }

// TestWhatGoesOnBetweenStepsIsLookedAtAgain: behind its last evaluation a job ends, which
// the slice of the evaluation says nothing of.
func TestWhatGoesOnBetweenStepsIsLookedAtAgain(t *testing.T) {
	const usual = 30 * time.Millisecond
	at := time.Now()
	s := strata{steps: 60, trained: firstSteps, stepAt: at}
	after := func(d time.Duration) bool { return s.unseen(at.Add(d), usual) }
	if after(40*time.Millisecond) || !after(120*time.Millisecond) {
		t.Fatal("the time between steps has no slice, or had one before it was longer than a step")
	}
	s.other = at.Add(400 * time.Millisecond) // it has seen it up to there
	if after(500 * time.Millisecond) {
		t.Error("another slice, 100 ms behind one that saw 400")
	}
	slices := 0
	for d := 600 * time.Millisecond; d < time.Minute; d += 10 * time.Millisecond {
		if after(d) {
			s.other = at.Add(d + 250*time.Millisecond)
			slices++
		}
	}
	if slices != grantedAgain {
		t.Errorf("%d more slices in a minute, want %d", slices, grantedAgain)
	}
}

// What the rest of the recording takes the probes have less, down to a quarter of the budget, or to what
// those take that are in all the time and a tenth, and more than a half they never have.
func TestTheProbesHaveWhatTheRestLeaves(t *testing.T) {
	for _, c := range []struct{ whole, rest, anchors, want float64 }{
		{0.05, 0, 0, 0.025}, {0.05, 0.02, 0, 0.025}, {0.05, 0.03, 0, 0.02}, {0.05, 0.045, 0, 0.0125}, {0.05, 0.3, 0.002, 0.0125},
		{0, 0.3, 0.1, 0},
		{0.05, 0.3, 0.015, 0.02}, {0.05, 0.3, 0.04, 0.025},
	} {
		a := &account{whole: c.whole, budget: budgetShare * c.whole}
		if a.beside(c.rest, c.anchors); math.Abs(a.budget-c.want) > 1e-12 {
			t.Errorf("%g of %g for the rest: probes have %g, want %g", c.rest, c.whole, a.budget, c.want)
		}
		if a.beside(0, 0); a.budget != budgetShare*c.whole {
			t.Errorf("%g: what the rest does not take any more is not the probes' again", c.whole)
		}
	}
}

// A slice at the beginning costs more than the budget for a while. The pause after it pays that back, so that nothing
// gives way for it for good.
func TestWhatAPausePaysBackIsNotAskedOfTheRest(t *testing.T) {
	const whole = 0.05
	g := testGovernor()
	g.account.whole, g.account.budget = whole, budgetShare*whole
	g.account.spent, g.account.clock.Own = 100*time.Millisecond, time.Second
	if got := g.Beside(0.01); math.Abs(got-budgetShare*whole) > 1e-12 {
		t.Errorf("the probes take %g of the job's time, want their part", got)
	}
	g.account.spent = 10 * time.Millisecond
	if got := g.Beside(0.01); math.Abs(got-0.01) > 1e-12 {
		t.Errorf("the probes take %g of the job's time, want what they took", got)
	}
	g.account.spent, g.anchors.shares = 100*time.Millisecond, map[string]float64{"steps": 0.04}
	if got := g.Beside(0.01); math.Abs(got-0.04) > 1e-12 {
		t.Errorf("anchors have no pause: %g, want 0.04", got)
	}
}
