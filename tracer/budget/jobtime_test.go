package budget

import (
	"math"
	"testing"
	"time"
)

// clockOf is a clock whose processes waited so long for a core, by look.
func clockOf(looks []time.Duration, waits ...map[int]time.Duration) *jobClock {
	c := newJobClock()
	at := time.Now()
	for i, after := range looks {
		c.waits = func(tid int32) (time.Duration, bool) {
			w, ok := waits[i][int(tid)]
			return w, ok
		}
		c.tick(at.Add(after), []int{1, 2})
	}
	return c
}

func TestTheJobsTimeIsWithoutItsWaitsForACore(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		looks []time.Duration
		waits []map[int]time.Duration
		own   time.Duration
		share float64
	}{
		"a core of its own":       {[]time.Duration{0, s}, []map[int]time.Duration{{1: 5 * s}, {1: 5 * s}}, s, 1},
		"half a core":             {[]time.Duration{0, 2 * s}, []map[int]time.Duration{{1: 0}, {1: s}}, s, 0.5},
		"two processes":           {[]time.Duration{0, s}, []map[int]time.Duration{{1: 0, 2: 0}, {1: s / 2, 2: 0}}, s * 3 / 4, 0.75},
		"one is new":              {[]time.Duration{0, s}, []map[int]time.Duration{{1: 0}, {1: s / 2, 2: 9 * s}}, s / 2, 0.5},
		"one is gone":             {[]time.Duration{0, s}, []map[int]time.Duration{{1: 0, 2: 0}, {1: s / 2}}, s / 2, 0.5},
		"nobody knows":            {[]time.Duration{0, s}, []map[int]time.Duration{{}, {}}, s, 1},
		"never on a core":         {[]time.Duration{0, s}, []map[int]time.Duration{{1: 0}, {1: s}}, s / 20, 0.05},
		"a wait charged too late": {[]time.Duration{0, s}, []map[int]time.Duration{{1: 0}, {1: 3 * s}}, s / 20, 0.05},
		"of late":                 {[]time.Duration{0, s / 2, s}, []map[int]time.Duration{{1: 0}, {1: 0}, {1: s / 2}}, s/2 + s/40, 1 - 0.95/2},
		"looked at too soon":      {[]time.Duration{0, s, s + time.Millisecond}, []map[int]time.Duration{{1: 0}, {1: 0}, {1: s}}, s, 1},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clockOf(c.looks, c.waits...)
			if diff := clock.own - c.own; diff < -time.Microsecond || diff > time.Microsecond {
				t.Errorf("own time %s, want %s", clock.own, c.own)
			}
			if math.Abs(clock.share-c.share) > 1e-6 {
				t.Errorf("share %v, want %v", clock.share, c.share)
			}
		})
	}
}

func TestThePauseIsOfTheJobsTime(t *testing.T) {
	clock := newJobClock()
	g := &Governor{budget: 0.01, clock: clock, spent: 10 * time.Millisecond}
	clock.own, clock.share = 400*time.Millisecond, 1
	if pause := clock.until(g.spent, g.budget); pause != 600*time.Millisecond {
		t.Errorf("with a core of its own: %s, want 600ms: 10 ms are 1 %% of a second", pause)
	}
	clock.share = 0.5
	if pause := clock.until(g.spent, g.budget); pause != 1200*time.Millisecond {
		t.Errorf("with half a core: %s, want 1.2s", pause)
	}
}

// A pause that began while others had the CPUs is over when the job has had the time that
// pays for it, and not before that where they take them later.
func TestThePauseFollowsTheJobsShareOfTheTime(t *testing.T) {
	const s = time.Second
	began := time.Now()
	waited := 9 * s / 10 // of the first second
	clock := newJobClock()
	clock.waits = func(int32) (time.Duration, bool) { return waited, true }
	g := &Governor{budget: 0.01, clock: clock, spent: 30 * time.Millisecond, job: oneProcess{}}
	clock.waited, clock.at = map[int]time.Duration{1: 0}, began.Add(-s)
	g.tickJob(began)
	g.until = began.Add(clock.until(g.spent, g.budget)) // 2.9 s of the job, which has a tenth of the time
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
