package expense

import (
	"testing"
	"time"
)

// cheap is busy where the tracer takes so much of a CPU, half of that of the job's time.
func cheap(r Rates, own time.Duration) *Interval {
	i := busy(r)
	i.Own, i.Used = own, i.Job+own
	return i
}

// The parts of a recording whose sum is more than the budget give way one after the other, the dearest first, until the
// sum is within it or what is left is a trifle.
func TestTheSumKeepsTheBudget(t *testing.T) {
	const budget = 0.05
	// Of the job's time: 2 % for waits, 1.5 for reads and writes, 2.5 for the tracer's CPU time, 1 for probes.
	i := cheap(Rates{Waits: Pair{Job: 0.04}, IO: Pair{Job: 0.03}}, 50*time.Millisecond)
	form, ownMay, order := Form{Waits: true, IO: true}, true, ""
	for range 9 {
		next, own := Cheaper(form, i, 0.01, budget, ownMay)
		switch {
		case own:
			order += "own "
			i.Own, i.Used = i.Own/2, i.Job+i.Own/2 // larger batches, say
			ownMay = false
		case form.Waits && !next.Waits:
			order += "waits "
		case form.IO && !next.IO:
			order += "io "
		case next == form:
			order += "within "
		}
		if form = next; order[len(order)-2] == 'n' && !own { // within
			break
		}
	}
	if order != "own waits within " {
		t.Errorf("what gave way: %s", order)
	}
	if _, own := Cheaper(form, i, 0.01, budget, true); own {
		t.Error("the tracer gives way though the sum is within the budget")
	}
}

func TestWhatDoesNotGiveWayForTheSum(t *testing.T) {
	both := Form{Waits: true, IO: true}
	for name, c := range map[string]struct {
		form   Form
		rates  Rates
		probes float64
		budget float64
		ownMay bool
		want   Form
		own    bool
	}{
		"within":                    {both, Rates{Waits: Pair{Job: 0.03}}, 0.01, 0.05, true, both, false},
		"the probes are too much":   {both, Rates{Waits: Pair{Job: 0.01}, IO: Pair{Job: 0.01}}, 0.04, 0.05, false, both, false},
		"and the tracer can less":   {both, Rates{Waits: Pair{Job: 0.03}}, 0.02, 0.05, true, both, true},
		"what is gone costs nought": {Form{}, Rates{Waits: Pair{Job: 2}, IO: Pair{Job: 2}}, 0.02, 0.05, false, Form{}, false},
		"reads are the dearest":     {both, Rates{Waits: Pair{Job: 0.03}, IO: Pair{Job: 0.06}}, 0.02, 0.05, true, Form{Waits: true}, false},
		"no budget":                 {both, Rates{Waits: Pair{Job: 2}}, 1, 0, true, both, false},
	} {
		if next, own := Cheaper(c.form, cheap(c.rates, 40*time.Millisecond), c.probes, c.budget, c.ownMay); next != c.want || own != c.own {
			t.Errorf("%s: %+v, %t, want %+v, %t", name, next, own, c.want, c.own)
		}
	}
}
