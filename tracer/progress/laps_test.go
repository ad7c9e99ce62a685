package progress

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

const msec = int64(1e6)

// TestTheStepBeforeAPauseHasAllOfItsBackwardPass: the optimizer's calls, recorded in each step at
// first, are recorded in slices from the twentieth step on, and then are no marks. The last step
// before an evaluation lies in a slice, whose probes make its backward pass and its optimizer four
// times as long.
func TestTheStepBeforeAPauseHasAllOfItsBackwardPass(t *testing.T) {
	c := NewStepClock()
	at, pause := 1000*msec, int64(0)
	for i := range int64(60) {
		backward, optimizer := 6*msec/10, 4*msec/10
		if i == 39 {
			backward, optimizer = 4*backward, 4*optimizer
		}
		c.Saw(7, at, at+backward)
		if i < 20 {
			c.Mark(7, at+backward, at+backward+optimizer)
		}
		if i == 39 {
			pause = at + backward + optimizer
			c.Load(7, pause+50*msec)
			at += 300 * msec
		}
		at += 30 * msec
	}
	last := at - 30*msec
	p := c.Steps()[7]
	line := p.Timeline(0, at+2000*msec)
	var evaluation, end *Gap
	for i := range line.Gaps {
		switch g := &line.Gaps[i]; {
		case g.Phase == event.PhaseEvaluation:
			evaluation = g
		case g.From > last:
			end = g
		}
	}
	if evaluation == nil || evaluation.From < pause || evaluation.From > pause+msec {
		t.Errorf("the evaluation is %+v, want one from %d on: before that the step goes on", evaluation, pause)
	}
	if end == nil || end.From < last+msec || end.From > last+2*msec {
		t.Errorf("behind the last step lies %+v, want it to begin after its optimizer, which takes as long as it did at first: %d", end,
			last+msec)
	}
}
