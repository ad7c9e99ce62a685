package budget

import "testing"

func TestStepsInsideStepsAreNone(t *testing.T) {
	c := NewStepClock()
	c.Saw(7, 110, 120) // its record comes before that of the one around it
	c.Saw(7, 100, 150)
	c.Saw(7, 210, 220)
	c.Saw(7, 230, 240)
	c.Saw(7, 200, 250)
	if got := c.steps()[7]; len(got) != 2 || got[0].begin != 100 || got[1].begin != 200 {
		t.Errorf("the steps are %v, want ones that begin at 100 and 200", got)
	}
	if got := c.longest(); got != 100 {
		t.Errorf("the longest step takes %d ns, want 100", got)
	}
}

func TestTheStepClockForgetsWhatIsLongGone(t *testing.T) {
	c := NewStepClock()
	for i := range int64(3 * keptSteps) {
		c.Saw(1, i*10, i*10+5)
	}
	if n := len(c.processes[1]); n < keptSteps || n > 2*keptSteps {
		t.Errorf("%d steps are kept, want %d to %d", n, keptSteps, 2*keptSteps)
	}
	for pid := range int32(keptStepping + 10) {
		c.Saw(100+pid, int64(1e9)+int64(pid), int64(2e9))
	}
	if n := len(c.processes); n != keptStepping {
		t.Errorf("%d processes are kept, want %d", n, keptStepping)
	}
	if _, ok := c.processes[1]; ok {
		t.Error("the process whose last step is the oldest is still there")
	}
}

// TestAStepOfBeforeThatComesLateIsNoStep: the records of the last steps that were all
// seen are read after the clock began anew. A handful of steps would turn the rest of
// the recording into something that is no training.
func TestAStepOfBeforeThatComesLateIsNoStep(t *testing.T) {
	c := NewStepClock()
	c.Saw(7, 100, 150)
	c.forget(200)
	c.Saw(7, 180, 190)
	c.Mark(7, 191, 192)
	c.Load(7, 195)
	if got, asked := c.steps()[7], c.loads(7); len(got) > 0 || len(asked) > 0 {
		t.Errorf("steps %v and loads %v of before are known", got, asked)
	}
	c.Saw(7, 210, 220)
	if got := c.steps()[7]; len(got) != 1 {
		t.Errorf("the steps are %v, want the one that begins at 210", got)
	}
}
