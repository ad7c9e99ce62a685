package kernel

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/budget"
)

func TestAPriceIsMultipliedWithAFactorAlone(t *testing.T) {
	cost := budget.HitCost{Warm: [3]float64{250, 560, 19000}, Cold: 2000}
	for by, want := range map[string]budget.HitCost{
		"1": cost, "": cost, "much": cost, "0": cost, "-2": cost,
		"0.5": {Warm: [3]float64{125, 280, 9500}, Cold: 1000},
		"3":   {Warm: [3]float64{750, 1680, 57000}, Cold: 6000},
	} {
		if got := scaled(cost, by); got != want {
			t.Errorf("by %q: %v, want %v", by, got, want)
		}
	}
}
