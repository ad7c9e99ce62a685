package budget

import (
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/progress"
)

// The session says that a slice of two steps took more than the budget where it did, and not
// where that took more than the account may fill of it.
func TestTheSessionSaysWhichLimitHeld(t *testing.T) {
	for _, test := range []struct {
		name    string
		traps   uint64 // of a microsecond each, in a second of the job's time
		granted bool
		want    bool
	}{
		{"within the account", 10_000, true, false},
		{"within the budget", 20_000, true, false},
		{"more than the budget", 40_000, true, true},
		{"more, and no slice was granted", 40_000, false, false},
	} {
		passes, traps := uint64(0), test.traps
		g := New(Config{
			Budget: 0.05, Probes: passing{passes: &passes, traps: &traps}, Job: noJob{}, Switches: noSwitches{},
			Nodes: progress.NewNodeClock(), Steps: progress.NewStepClock(), Warn: func(event.Warning) {},
			Cost: HitCost{Warm: [3]float64{1000, 1000, 1000}},
		})
		g.account.clock.Own, g.account.clock.At = time.Second, time.Now().Add(time.Hour)
		g.strata.granted = test.granted
		cost := g.Cost(2)
		if cost.Hits != test.traps || cost.Exceeded != test.want {
			t.Errorf("%s: %d hits, %.1f %% of the job's time, two_steps: %v, want %v", test.name, cost.Hits, 100*cost.Share, cost.Exceeded,
				test.want)
		}
	}
}
