package progress

import "testing"

func TestStepsInsideStepsAreNone(t *testing.T) {
	c := NewStepClock()
	c.Saw(7, 110, 120) // its record comes before that of the one around it
	c.Saw(7, 100, 150)
	c.Saw(7, 210, 220)
	c.Saw(7, 230, 240)
	c.Saw(7, 200, 250)
	if got := c.Steps()[7].steps; len(got) != 2 || got[0].begin != 100 || got[1].begin != 200 {
		t.Errorf("the steps are %v, want ones that begin at 100 and 200", got)
	}
	if got := c.Longest(); got != 100 {
		t.Errorf("the longest step takes %d ns, want 100", got)
	}
}

// TestTheStepClockKeepsWhatIsNeeded: of steps that last for less than a millisecond
// there are tens of thousands before the first slice has its weights.
func TestTheStepClockKeepsWhatIsNeeded(t *testing.T) {
	c := NewStepClock()
	for i := range int64(mostSteps / 2) {
		c.Saw(1, 10+i*10, 15+i*10)
		c.Load(1, 11+i*10)
	}
	if p := c.processes[1]; len(p.steps) != mostSteps/2 || len(p.loads) != mostSteps/2 || p.known != 0 {
		t.Errorf("%d steps and %d loads are kept, from %d on, want all", len(p.steps), len(p.loads), p.known)
	}
	if c.Crowded() {
		t.Error("half of the room is taken, and it is crowded")
	}
	c.Need(1, 1000)
	c.Saw(1, 1e9, 1e9+5)
	c.Load(1, 1e9)
	if !c.Crowded() {
		t.Error("more than half of the room is taken, and it is not crowded")
	}
	if p := c.processes[1]; p.known != 0 {
		t.Errorf("a hundred steps are let go, up to %d: too few to be worth it", p.known)
	}
	c.Need(1, 1e6)
	c.Saw(1, 2e9, 2e9+5)
	c.Load(1, 2e9)
	if p := c.processes[1]; p.known != 1e6 || p.steps[0].begin != 1e6 || p.loads[0] < 1e6 || p.loads[0] > 1e6+10 {
		t.Errorf("the steps are known from %d on, the first of %d at %d, of %d loads at %d, want 1e6", p.known, len(p.steps), p.steps[0].begin,
			len(p.loads), p.loads[0])
	}
}

func TestTheStepClockHasItsLimits(t *testing.T) {
	c := NewStepClock()
	for i := range int64(2 * mostSteps) {
		c.Saw(1, i*10, i*10+5)
		c.Load(1, i*10+1)
	}
	p := c.processes[1]
	if n, loads := len(p.steps), len(p.loads); n > mostSteps || n < mostSteps/2 || loads > mostSteps || loads < mostSteps/2 {
		t.Errorf("%d steps and %d loads are kept, want no more than %d", n, loads, mostSteps)
	}
	if p.known != p.steps[0].begin || p.known == 0 {
		t.Errorf("the steps are known from %d on, the first begins at %d", p.known, p.steps[0].begin)
	}
	for pid := range int32(keptStepping + 10) {
		for i := range int64(mostSteps / keptStepping * 2) {
			c.Saw(100+pid, int64(1e9)+int64(pid)+i*2e9, int64(2e9)+i*2e9)
			c.Load(100+pid, int64(1e9)+int64(pid)+i*2e9)
		}
	}
	if n := len(c.processes); n != keptStepping {
		t.Errorf("%d processes are kept, want %d", n, keptStepping)
	}
	if _, ok := c.processes[1]; ok {
		t.Error("the process whose last step is the oldest is still there")
	}
	steps, loads := 0, 0
	for _, p := range c.processes {
		steps, loads = steps+len(p.steps), loads+len(p.loads)
	}
	if steps > 2*mostSteps || loads > 2*mostSteps {
		t.Errorf("%d steps and %d loads are kept in all", steps, loads)
	}
}

// TestAStepOfBeforeThatComesLateIsNoStep: the records of the last steps that were all
// seen are read after the clock began anew. A handful of steps would turn the rest of
// the recording into something that is no training.
func TestAStepOfBeforeThatComesLateIsNoStep(t *testing.T) {
	c := NewStepClock()
	c.Saw(7, 100, 150)
	c.Forget(200)
	c.Saw(7, 180, 190)
	c.Mark(7, 191, 192)
	c.Load(7, 195)
	if got := c.Steps()[7]; len(got.steps) > 0 || len(got.loads) > 0 {
		t.Errorf("steps %v and loads %v of before are known", got.steps, got.loads)
	}
	c.Saw(7, 210, 220)
	if got := c.Steps()[7].steps; len(got) != 1 {
		t.Errorf("the steps are %v, want the one that begins at 210", got)
	}
}

// TestAProcessThatHasEndedDoesNothing: the recording ends later than it.
func TestAProcessThatHasEndedDoesNothing(t *testing.T) {
	c := NewStepClock()
	for i := range int64(10) {
		c.Saw(7, i*1e8, i*1e8+1e7)
	}
	c.Ended(7, 2e9)
	p := c.Steps()[7]
	if line := p.Timeline(0, 5e9); len(line.Gaps) != 1 || line.Gaps[0].To != 2e9 {
		t.Errorf("it did something else at %v, want up to 2 s", line.Gaps)
	}
	c.Saw(7, 3e9, 3e9+1e7) // another one has its number
	c.Saw(7, 3e9+1e8, 3e9+1.1e8)
	p = c.Steps()[7]
	if line := p.Timeline(3e9, 5e9); p.Count() != 2 || len(line.Gaps) != 1 || line.Gaps[0].To != 5e9 {
		t.Errorf("%d steps, gaps %v", p.Count(), line.Gaps)
	}
}
