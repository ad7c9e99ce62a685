package diff

import (
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/verdict"
	"github.com/ebpfprof/ebpfprof/internal/dataset/lint"
)

// noisy is a side whose steps differ by a third from one stretch to the next and by longer in
// all, and whose operators, ms of each, take the same always.
func noisy(longer float64, operators map[string]float64) *Side {
	s := &Side{What: "a step", Checks: &lint.Result{Percent: 100}, PerStep: map[Key]float64{}, Windows: map[Key][]float64{}}
	for i := range 100 {
		ms := 10 + longer
		if i/10%2 == 1 {
			ms *= 1.3
		}
		s.Periods = append(s.Periods, ms)
	}
	for name, ms := range operators {
		k := Key{"operator", name}
		s.PerStep[k] = ms
		for i := range 10 {
			s.Windows[k] = append(s.Windows[k], ms*(1+0.002*float64(i%2)))
		}
	}
	return s
}

// TestAnOperatorBeyondItsNoiseIsNamedThoughTheStepIsNot: by itself it gives the verdict, if that is
// as much as was asked for and the rest of the step does not contradict it.
func TestAnOperatorBeyondItsNoiseIsNamedThoughTheStepIsNot(t *testing.T) {
	usual := map[string]float64{"aten::erf": 1, "aten::mm": 3, "aten::add": 1}
	before := noisy(0, usual)
	for name, c := range map[string]struct {
		longer  float64
		changed map[string]float64
		failOn  float64
		want    verdict.Verdict
		says    string
	}{
		"an operator": {0.6, map[string]float64{"aten::erf": 1.6}, 3, verdict.Regression,
			"Regression: operator aten::erf takes 1.600 ms instead of 1.000 ms, 5.2 % of the step more"},
		"two": {-1, map[string]float64{"aten::erf": 0.5, "aten::mm": 2.5}, 3, verdict.Improvement,
			"Improvement: 2 operators take 8.7 % of the step less"},
		"less than asked for": {0.2, map[string]float64{"aten::erf": 1.25}, 3, verdict.Inconclusive,
			"beyond its own noise, operator aten::erf takes"},
		"the step is shorter": {-1.2, map[string]float64{"aten::erf": 1.8}, 3, verdict.Inconclusive,
			"beyond its own noise, operator aten::erf takes"},
		"less than its noise": {0.1, map[string]float64{"aten::erf": 1.02}, 1, verdict.Inconclusive,
			"is not known: record longer, or more often."},
		"nothing, and the noise": {0.1, nil, 1, verdict.Inconclusive, "is not known: record longer, or more often."},
	} {
		after := map[string]float64{}
		for k, v := range usual {
			after[k] = v
		}
		for k, v := range c.changed {
			after[k] = v
		}
		r := Compare(before, noisy(c.longer, after), c.failOn)
		if r.Verdict != c.want || !strings.Contains(r.Sentence, c.says) {
			t.Errorf("%s: %s", name, r.Sentence)
		}
	}
}
