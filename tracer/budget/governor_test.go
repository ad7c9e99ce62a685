package budget

import (
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/progress"
	"github.com/ebpfprof/ebpfprof/tracer/weights"
)

func testGovernor() *Governor {
	return New(Config{
		Probes: noProbes{}, Job: noJob{}, Switches: noSwitches{}, Nodes: progress.NewNodeClock(), Steps: progress.NewStepClock(),
		Warn: func(event.Warning) {},
	})
}

func TestNextSliceIsPaidForByItsCycle(t *testing.T) {
	at := time.Now()
	g := testGovernor()
	g.account.budget = 0.05
	g.on, g.off = weights.Mark{At: at}, weights.Mark{At: at.Add(100 * time.Millisecond), Steps: 100}
	g.planNext(40*time.Millisecond, 10*time.Millisecond)
	// A second's budget is 50 ms; 10 are fixed, so 40 of hits at 0.4 a slice.
	if g.length != 100*time.Millisecond {
		t.Errorf("the next slice lasts %s, want 100ms", g.length)
	}
	g.planNext(40*time.Millisecond, 200*time.Millisecond)
	// The fixed cost alone is over: the slice grows to be worth it, the pause follows.
	if want := time.Second; g.length != want {
		t.Errorf("the next slice lasts %s, want %s", g.length, want)
	}
}
