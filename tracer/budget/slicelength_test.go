package budget

import (
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/progress"
	"github.com/ebpfprof/ebpfprof/tracer/weights"
)

// passing is a job of which one probe counts the backward passes.
type passing struct {
	noProbes
	passes *uint64
	traps  *uint64
}

func (p passing) Steps() []uint32 { return []uint32{0} }
func (p passing) At(uint32) Probe {
	return Probe{Probe: weights.Probe{Function: &spec.Function{Step: true}}}
}
func (p passing) Calls(uint32) (uint64, bool) { return *p.passes, true }
func (p passing) Hits([]uint32) map[uint32]Hits {
	return map[uint32]Hits{1: {Traps: *p.traps}}
}

// A slice that has seen one backward pass begin goes on until the next: a whole step lies
// between them. It does not wait for one that doesn't come, nor at any price.
func TestASliceGoesOnToTheNextPass(t *testing.T) {
	passes, traps := uint64(7), uint64(0)
	steps := progress.NewStepClock()
	g := New(Config{
		Probes: passing{passes: &passes, traps: &traps}, Job: noJob{}, Switches: noSwitches{}, Nodes: progress.NewNodeClock(), Steps: steps,
		Warn: func(event.Warning) {}, Cost: HitCost{Warm: [3]float64{1000, 1000, 1000}},
	})
	g.on = weights.Mark{At: time.Now(), Steps: 7}
	if awaitsPass(g.slicer, g.mark()) {
		t.Error("waits for a step of a job of which none is known")
	}
	for i := range int64(4) {
		steps.Saw(1, g.on.At.UnixNano()-(4-i)*int64(2*time.Second), g.on.At.UnixNano()-(4-i)*int64(2*time.Second)+1)
	}
	for _, test := range []struct {
		passes, traps uint64
		ago           time.Duration
		want          bool
	}{
		{7, 0, 0, false}, {8, 0, 0, true}, {9, 0, 0, false},
		{8, 0, 10 * time.Second, false},       // none comes any more
		{8, 1_000_000, 0, false},              // a second of the job's time and more
		{8, 0, 2500 * time.Millisecond, true}, // the first came late
	} {
		passes, traps = test.passes, test.traps
		g.on.At = time.Now().Add(-test.ago)
		g.before = map[uint32]Hits{1: {}}
		if got := awaitsPass(g.slicer, g.mark()); got != test.want {
			t.Errorf("%d passes and %d hits after %s: waits: %v, want %v", passes-7, traps, test.ago, got, test.want)
		}
	}
}

// A slice that waits for a job's first steps ends when it has seen them, however cheap it is to go on.
func TestASliceThatAwaitsTheFirstStepsEndsWithThem(t *testing.T) {
	passes, traps := uint64(7), uint64(0)
	g := New(Config{
		Budget: 0.01, Probes: passing{passes: &passes, traps: &traps}, Job: noJob{}, Switches: noSwitches{}, Rows: noRows{},
		Nodes: progress.NewNodeClock(), Steps: progress.NewStepClock(), Warn: func(event.Warning) {},
		Cost: HitCost{Warm: [3]float64{1000, 1000, 1000}},
	})
	begun := time.Now()
	g.on, g.phase, g.until = weights.Mark{At: begun, Steps: 7}, phaseOn, begun
	g.interval.on, g.interval.before, g.before = g.on, map[uint32]Hits{1: {}}, map[uint32]Hits{1: {}}
	g.strata.look(begun, 7)
	g.strata.learnt = begun.Add(time.Hour) // nothing is new
	if err := g.Step(); err != nil || g.phase != phaseOn {
		t.Fatalf("without a step it goes on to phase %d: %v", g.phase, err)
	}
	passes += firstSteps + 1
	if err := g.Step(); err != nil || g.phase == phaseOn {
		t.Errorf("it goes on when %d steps have begun: %v", passes-7, err)
	}
}

// A slice of what lies between two steps sees the end of it, unless that is too long or too
// expensive.
func TestASliceBetweenStepsSeesTheEndOfThat(t *testing.T) {
	const usual = 30 * time.Millisecond
	g := testGovernor()
	g.account.budget, g.account.whole, g.account.clock.Own = 0.025, 0.05, 10*time.Second
	at := time.Now()
	g.strata = strata{steps: 60, trained: firstSteps, stepAt: at}
	g.on = weights.Mark{At: at.Add(100 * time.Millisecond), Steps: 60}
	waits := func(after time.Duration, rate float64) bool {
		return awaitsGap(g.slicer, weights.Mark{At: g.on.At.Add(after), Steps: g.strata.steps}, rate)
	}
	if waits(100*time.Millisecond, 0.02) {
		t.Error("a slice of steps waits for the end of an evaluation")
	}
	if !g.strata.unseen(at.Add(100*time.Millisecond), usual) {
		t.Fatal("no slice begins where the steps have stopped")
	}
	if !waits(300*time.Millisecond, 0.02) {
		t.Error("ends after 300 ms, in the middle of an evaluation")
	}
	if waits(300*time.Millisecond, 0.2) || waits(2*time.Second, 0.001) {
		t.Error("goes on at 60 ms of the job's time, or for two seconds")
	}
	g.account.spent = 495 * time.Millisecond
	if waits(300*time.Millisecond, 0.02) {
		t.Error("goes on where the budget of 5 % is spent")
	}
	g.account.spent = 0
	g.strata.look(at.Add(500*time.Millisecond), 61)
	if waits(300*time.Millisecond, 0.02) {
		t.Error("goes on though the next step has begun")
	}
	if !g.strata.wentOn() {
		t.Error("does not know that the steps went on")
	}
	g.strata.close(g.on, weights.Mark{At: at.Add(600 * time.Millisecond), Steps: 61}, usual)
	g.strata.steps = 60
	if waits(0, 0.02) {
		t.Error("the next slice waits as well")
	}
	if g.strata.wentOn() {
		t.Error("the next slice ends at once")
	}
}

// On a busy machine a step may stall for longer than steps take. A slice that began for that
// takes none away from an evaluation; one that stalls again and again begins no more.
func TestAStallTakesNoSliceFromAnEvaluation(t *testing.T) {
	const usual = 30 * time.Millisecond
	at := time.Now()
	s := strata{steps: 60, trained: firstSteps, stepAt: at}
	next := func(after time.Duration) (granted bool) {
		granted = s.unseen(at.Add(100*time.Millisecond), usual)
		at = at.Add(after)
		s.look(at, s.steps+1)
		s.close(weights.Mark{At: at.Add(-10 * time.Millisecond), Steps: s.steps - 1}, weights.Mark{At: at, Steps: s.steps}, usual)
		return granted
	}
	for range forgivenStalls {
		if !next(110 * time.Millisecond) {
			t.Fatal("a stall has no slice")
		}
	}
	for range grantedGaps {
		if !next(400 * time.Millisecond) {
			t.Error("an evaluation behind two stalls has no slice")
		}
	}
	if next(110 * time.Millisecond) {
		t.Error("slices are granted without end")
	}
}
