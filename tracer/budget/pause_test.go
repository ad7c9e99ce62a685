package budget

import (
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/progress"
)

func TestThePauseIsOfTheJobsTime(t *testing.T) {
	clock := progress.NewJobClock()
	g := &Governor{budget: 0.01, clock: clock, spent: 10 * time.Millisecond}
	clock.own, clock.share = 400*time.Millisecond, 1
	if pause := clock.Until(g.spent, g.budget); pause != 600*time.Millisecond {
		t.Errorf("with a core of its own: %s, want 600ms: 10 ms are 1 %% of a second", pause)
	}
	clock.share = 0.5
	if pause := clock.Until(g.spent, g.budget); pause != 1200*time.Millisecond {
		t.Errorf("with half a core: %s, want 1.2s", pause)
	}
}

// A pause that began while others had the CPUs is over when the job has had the time that
// pays for it, and not before that where they take them later.
func TestThePauseFollowsTheJobsShareOfTheTime(t *testing.T) {
	const s = time.Second
	began := time.Now()
	waited := 9 * s / 10 // of the first second
	clock := progress.NewJobClock()
	clock.waits = func(int32) (time.Duration, bool) { return waited, true }
	g := &Governor{budget: 0.01, clock: clock, spent: 30 * time.Millisecond, job: oneProcess{}}
	clock.waited, clock.at = map[int]time.Duration{1: 0}, began.Add(-s)
	g.tickJob(began)
	g.until = began.Add(clock.Until(g.spent, g.budget)) // 2.9 s of the job, which has a tenth of the time
	if left := g.until.Sub(began); left < 28*s || left > 30*s {
		t.Fatalf("the pause begins with %s", left)
	}
	over := time.Duration(0)
	for at := s; over == 0 && at < 30*s; at += s / 2 { // it has a core of its own now
		if g.paid(began.Add(at)) {
			over = at
		}
	}
	if over < 5*s/2 || over > 4*s {
		t.Errorf("the pause was over after %s, 2.9 s pay for it", over)
	}
	g.spent, g.until = 100*time.Millisecond, began.Add(over+s)
	waited += s
	if g.paid(began.Add(over + s + s/2)) {
		t.Error("the pause is over, and nothing has paid for it")
	}
}

// oneProcess is a job of one.
type oneProcess struct{ noJob }

func (oneProcess) Processes() []int { return []int{1} }
