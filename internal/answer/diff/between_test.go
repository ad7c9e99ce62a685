package diff

import (
	"errors"
	"math"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// sliced is a recording of 60 steps of 10 ms, of which those in slices take 13: a slice is
// as many steps as share, of each ten.
func sliced(t *testing.T, share int) *Side {
	t.Helper()
	d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	backward := &event.Call{Layer: "autograd", Category: "backward", Name: "Engine::execute"}
	optimizer := &event.Call{Layer: "scope", Name: "Optimizer.step#SGD.step"}
	var spans []event.Span
	var slices []event.Slice
	now := int64(1e15)
	for n := range int64(60) {
		slower := n%10 < int64(share)
		took := int64(10e6)
		if slower {
			took = 13e6
		}
		if n%10 == 0 && share > 0 {
			slices = append(slices, event.Slice{ID: n + 1, PID: 1, Group: "autograd", BeginNS: now, EndNS: now + int64(share)*13e6 - 1, FromNS: now,
				ToNS: now + 1e8, Recorded: 1, Represented: 10})
		}
		for i, c := range []*event.Call{backward, optimizer} {
			spans = append(spans, event.Span{ID: 2*n + int64(i) + 1, StartNS: now + int64(i)*took/2, DurationNS: took / 3, PID: 1, TID: 1, Call: c,
				End: event.EndExitSite, Weight: 1, SequenceNumber: -1})
		}
		now += took
	}
	framework := "pytorch"
	if err := errors.Join(d.Session(event.Recording{ID: "s"}),
		d.Write(&event.Batch{Processes: []event.Process{{ID: 1, PID: 1, Framework: &framework}}}), d.Write(&event.Batch{Spans: spans}),
		d.Write(&event.Batch{Slices: slices}), d.Close()); err != nil {
		t.Fatal(err)
	}
	return sideOf(t, d.Dir())
}

// TestStepsThatProbesMadeLongerAreNotCompared: how many there are is the budget's choice.
// Where a recording has none but such steps, that is said.
func TestStepsThatProbesMadeLongerAreNotCompared(t *testing.T) {
	few, many, all, none := sliced(t, 2), sliced(t, 7), sliced(t, 10), sliced(t, 0)
	steps := func(r *Result) (f Fact) {
		for _, c := range r.Comparability {
			if c.What == "steps" {
				f = c
			}
		}
		return f
	}
	if r := Compare(few, many, 3); math.Abs(r.Step.Percent) > 1e-9 || r.Step.Before != 10 || !steps(r).Same {
		t.Errorf("%s %+v", r.Sentence, steps(r))
	}
	if r := Compare(few, all, 3); r.Step.Percent < 20 || steps(r).Same {
		t.Errorf("%s %+v", r.Sentence, steps(r))
	}
	if r := Compare(Join(few, few), Join(many, many), 3); math.Abs(r.Step.Percent) > 1e-9 {
		t.Errorf("repeats: %s", r.Sentence)
	}
	if r := Compare(none, none, 3); steps(r).What != "" || r.Step.Before != 10 {
		t.Errorf("without slices: %s %+v", r.Sentence, steps(r))
	}
}
