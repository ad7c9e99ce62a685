package report

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// loopInSlices are 60 steps of 10 ms of which every second ten are in slices, where probes
// make them 20 ms: forward has 40 % of these, the backward pass 30 %, the optimizer 20 %.
func loopInSlices(d *output.Dataset) error {
	var spans []event.Span
	var slices []event.Slice
	now := int64(1e15)
	for n := range int64(60) {
		detail := n/10%2 == 1
		took := int64(10e6)
		if detail {
			took = 20e6
		}
		add := func(at, percent int64, layer, category, name string, slice int64) {
			spans = append(spans, event.Span{ID: int64(len(spans) + 1), StartNS: now + took*at/100, DurationNS: took * percent / 100, PID: 7, TID: 8,
				End: event.EndExitSite, Weight: 1,
				SequenceNumber: -1, SliceID: slice, Call: &event.Call{Layer: layer, Category: category, Name: name}})
		}
		if detail {
			if n%10 == 0 {
				slices = append(slices, event.Slice{ID: n, PID: 7, Group: "op", BeginNS: now, EndNS: now + 10*took - 1, FromNS: now,
					ToNS: now + 20*took, Phase: event.PhaseTraining,
					Unit: event.UnitSteps, Recorded: 10, Represented: 10, Steps: 10})
			}
			add(0, 40, "op", "", "aten::mm", n/10*10)
		}
		add(40, 30, "autograd", "backward", "Engine::execute", 0)
		add(70, 20, "scope", "", "Optimizer.step#SGD.step", 0)
		now += took
	}
	framework := "pytorch"
	return errors.Join(d.Write(&event.Batch{Processes: []event.Process{{ID: 1, PID: 7, Framework: &framework}}}),
		d.Write(&event.Batch{Slices: slices}), d.Write(&event.Batch{Spans: spans}))
}

// TestPhasesOfSlicesAreOfStepsWithoutProbes: their shares hold, their milliseconds do not.
func TestPhasesOfSlicesAreOfStepsWithoutProbes(t *testing.T) {
	r := built(t, made(t, loopInSlices))
	if r.Steps == nil || r.Steps.UnslicedMS == nil || math.Abs(*r.Steps.UnslicedMS-10) > 0.5 || r.Steps.Unsliced < 20 || r.Steps.MeanMS < 13 {
		t.Fatalf("%+v", r.Steps)
	}
	sum := 0.0
	for _, p := range r.Phases {
		want := map[string]float64{timeline.Forward: 4, timeline.Backward: 3, timeline.Optimizer: 2, timeline.OtherPhase: 1}[p.Phase]
		if sum += p.MSPerStep; math.Abs(p.MSPerStep-want) > 0.3 || !p.Estimated || p.LoMS == nil || *p.LoMS > p.MSPerStep ||
			*p.HiMS < p.MSPerStep {
			t.Errorf("%+v, want %g ms of a step without probes", p, want)
		}
	}
	if math.Abs(sum-*r.Steps.UnslicedMS) > 1e-6 {
		t.Errorf("phases have %g ms of a step of %g", sum, *r.Steps.UnslicedMS)
	}
	for format, wants := range map[string][]string{
		"text":     {"ms are estimated: their shares of the 10.0"},
		"markdown": {"ms are estimated: their shares of the 10.0"},
		"html":     {"ms are estimated: their shares of the 10.0"},
		"json":     {`"unsliced_mean_ms": 10`, `"estimated": true`},
	} {
		var text bytes.Buffer
		if err := r.Write(&text, format, Style{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(strings.ReplaceAll(text.String(), "\u00a0", " "), want) {
				t.Errorf("%s lacks %q", format, want)
			}
		}
	}
	// Without slices nothing is estimated.
	for _, p := range built(t, made(t, loop)).Phases {
		if p.Estimated {
			t.Errorf("%+v", p)
		}
	}
}
