package expense

import (
	"math"
	"testing"
	"time"
)

// busy is a job that keeps two CPUs of a full machine busy for a second.
func busy(r Rates) *Interval {
	return &Interval{Length: time.Second, Job: 2 * time.Second, Own: 100 * time.Millisecond, Full: 1, Used: 2100 * time.Millisecond, Rates: r}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestSharesAreOfTheCPUsThatTheJobKeepsBusy(t *testing.T) {
	i := busy(Rates{Waits: Pair{0.3, 0.2}, IO: Pair{0.1, 0.1}, Samples: 0.02, Starts: 0.04})
	p := i.Shares()
	if !near(p.Waits, 0.1) || !near(p.IO, 0.05) || !near(p.Samples, 0.01) || !near(p.Starts, 0.02) || !near(p.Own, 0.05) {
		t.Errorf("shares %+v", p)
	}
	i.Used = 8100 * time.Millisecond // others have three quarters of what we would not take
	if p := i.Shares(); !near(p.Own, 0.0125) {
		t.Errorf("beside others: %+v", p)
	}
	i.Used = 110 * time.Millisecond
	i.Job = 10 * time.Millisecond // it sleeps: a CPU is the least
	if p := i.Shares(); !near(p.Waits, 0.2) || !near(p.Own, 0.1) {
		t.Errorf("of a job that sleeps: %+v", p)
	}
	i.Full = 0.25 // our CPU time is mostly nobody's
	if p := i.Shares(); !near(p.Own, 0.025) {
		t.Errorf("on an idle machine: %+v", p)
	}
}

func TestIntervalsCountByTheirTime(t *testing.T) {
	var a Account
	if a.Known() {
		t.Error("known before anything was added")
	}
	a.Add(busy(Rates{Waits: Pair{0.2, 0.2}}))
	long := busy(Rates{})
	long.Length, long.Job, long.Own, long.Used = 3*time.Second, 6*time.Second, 0, 6*time.Second
	a.Add(long)
	if p := a.Shares(); !near(p.Waits, 0.025) || !near(p.Own, 0.0125) || !near(p.Sum(), 0.0375) || !a.Known() {
		t.Errorf("shares of both %+v", p)
	}
}

func TestTheDearestGivesWayFirst(t *testing.T) {
	both := Form{Waits: true, IO: true}
	for name, c := range map[string]struct {
		now    Form
		rates  Rates
		budget float64
		cpus   int
		want   Form
	}{
		"cheap":                          {both, Rates{Waits: Pair{0.001, 0.001}, IO: Pair{0.001, 0.001}}, 0.05, 2, both},
		"reads cost more":                {both, Rates{Waits: Pair{0.03, 0.03}, IO: Pair{0.1, 0.1}}, 0.05, 64, Form{Waits: true}},
		"switches cost more":             {both, Rates{Waits: Pair{0.1, 0.1}, IO: Pair{0.03, 0.03}}, 0.05, 64, Form{IO: true}},
		"what is gone costs nothing":     {Form{Waits: true}, Rates{Waits: Pair{0.01, 0.01}, IO: Pair{5, 5}}, 0.05, 64, Form{Waits: true}},
		"the last gives way":             {Form{Waits: true}, Rates{Waits: Pair{0.1, 0.1}}, 0.05, 64, Form{}},
		"a smaller budget":               {both, Rates{Waits: Pair{0.01, 0.01}}, 0.01, 64, Form{IO: true}},
		"neighbours pay, the job hardly": {both, Rates{Waits: Pair{0.03, 0}, IO: Pair{0.05, 0}}, 0.05, 2, Form{Waits: true}},
		"no budget":                      {both, Rates{Waits: Pair{0.5, 0.5}}, -1, 2, both},
	} {
		next, _, _ := Judge(c.now, busy(c.rates), false, c.budget, c.cpus)
		if next != c.want {
			t.Errorf("%s: %+v, want %+v", name, next, c.want)
		}
	}
}

func TestTheTracersOwnPart(t *testing.T) {
	i := busy(Rates{})
	if OwnTooMuch(i, 0.05) || !OwnTooMuch(i, 0.01) || OwnTooMuch(i, -1) {
		t.Error("a tenth of a CPU beside two: within 5 %, beyond 1 %")
	}
}

func TestTheTracerTakesNobodysTimeWhileACPUIsIdle(t *testing.T) {
	for name, c := range map[string]struct {
		busy []float64
		own  float64
		want float64
	}{
		"a full machine":                     {[]float64{1, 1}, 0.14, 1},
		"one CPU of two is ours":             {[]float64{0.14, 1}, 0.14, 0},
		"others have a quarter of the other": {[]float64{0.39, 1}, 0.14, 0.25 / 0.86},
		"we fill more than one":              {[]float64{1, 0.5, 1}, 0.7, 0},
		"one of many is idle":                {[]float64{1, 1, 0.02, 1}, 0, 0.02},
	} {
		if got := Full(c.busy, c.own); !near(got, c.want) {
			t.Errorf("%s: %g, want %g", name, got, c.want)
		}
	}
}

// A second of ours on the other half of a core takes the job a quarter of a second.
func TestTheTracerSlowsWhoSharesItsCore(t *testing.T) {
	i := busy(Rates{})
	i.Job, i.Full, i.Used = time.Second, 0, 1100*time.Millisecond
	if p := i.Shares(); !near(p.Own, 0) {
		t.Errorf("on a core of its own: %+v", p)
	}
	i.Beside = Beside(true, i.JobCPUs(), 2)
	if p := i.Shares(); !near(p.Own, 0.1*slowed) {
		t.Errorf("on half of the job's core: %+v", p)
	}
	if b := Beside(true, 1, 11); !near(b, 0.1*slowed) {
		t.Errorf("where one CPU of ten others is the job's: %g", b)
	}
	if b := Beside(false, 8, 8); b != 0 {
		t.Errorf("where each CPU is a core: %g", b)
	}
}

// The first moment is short: what costs little too much is looked at again before it goes.
func TestTheFirstMomentDecidesWhereItIsObvious(t *testing.T) {
	now := Form{Waits: true}
	for cost, want := range map[float64]Form{0.03: {Waits: true}, 0.3: {}} {
		i := busy(Rates{Waits: Pair{2 * cost, 2 * cost}})
		if next, _, _ := Judge(now, i, true, 0.05, 64); next != want {
			t.Errorf("%g of the job's time in the first moment: %+v, want %+v", cost, next, want)
		}
		if next, _, _ := Judge(now, i, false, 0.05, 64); next.Waits {
			t.Errorf("%g of the job's time in a later one: %+v", cost, next)
		}
	}
}
