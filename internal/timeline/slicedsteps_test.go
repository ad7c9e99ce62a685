package timeline

import (
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/scripted"
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
