package timeline

import (
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// TestNoPeriodReachesFromSliceToSlice: thirty steps of 10 µs of which all is recorded, then
// slices of twelve and a half with 900 ms between them. Each step takes 10 µs, and there
// were as many as their weights say.
func TestNoPeriodReachesFromSliceToSlice(t *testing.T) {
	j := scripted.New()
	for range 30 {
		train(j)
	}
	for range 5 {
		j.Wait(900_000_000)
		j.Slice(12.5, 1250, func() {
			j.Backward(1000) // of a step that began before
			j.Optimize(1000)
			j.Wait(1000)
			for range 12 {
				train(j)
			}
			j.Load(1000) // of one that ends behind
		})
	}
	p := Summarize(find(t, open(t, scripted.Write(t, j))))
	l := p.Processes[0].Steps
	if l.MedianMS == nil || *l.MeanMS < 0.0099 || *l.MeanMS > 0.0101 || l.Slowest.MS > 0.0101 {
		t.Errorf("steps of %v ms, the slowest %v, want 0.010", *l.MeanMS, l.Slowest)
	}
	if l.Count < 85 || l.Count > 95 {
		t.Errorf("%d steps were seen, want 90 whole ones, and parts at the ends of slices", l.Count)
	}
	if l.Represented < 30+5*1200 || l.Represented > 30+5*1300 {
		t.Errorf("there were %v steps, want 6280", l.Represented)
	}
	var text strings.Builder
	if err := p.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "of about 6") || !strings.Contains(text.String(), "training steps seen, ") {
		t.Errorf("the text does not say of how many steps:\n%s", text.String())
	}
}

// TestStepsOfWhichOnlyTheScopesAreInSlicesAreCounted: backward passes are all recorded, and
// tell every step; a loader's call in a slice stands for many calls, and for one step.
func TestStepsOfWhichOnlyTheScopesAreInSlicesAreCounted(t *testing.T) {
	j := scripted.New()
	step := func(scopes bool) {
		if scopes {
			j.Load(1000)
		}
		j.Op("aten::mm", 2000)
		backward := j.Call("autograd", "backward", "Engine::execute", 3000)
		backward.Weight, backward.SliceID = 1, 0
		if scopes {
			j.Optimize(1000)
		}
		j.Wait(1000)
	}
	for range 60 { // before the scopes are found to be too many
		step(true)
	}
	for range 5 {
		for range 40 {
			step(false)
		}
		j.Slice(3, 43, func() {
			for range 3 {
				step(true)
			}
		})
	}
	p := Summarize(find(t, open(t, scripted.Write(t, j))))
	l := p.Processes[0].Steps
	if l.Count < 273 || l.Count > 275 || l.Represented != float64(l.Count) {
		t.Errorf("%d steps, of %v, want 275 that stand for themselves", l.Count, l.Represented)
	}
}
