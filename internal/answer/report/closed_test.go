package report

import (
	"math"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/explain"
)

// TestOperatorsFromSlicesDoNotExceedTheClock: estimates of 30 s in 20 s are shortened alike, and their intervals with them;
// those that fit, and times that are no estimates, stay.
func TestOperatorsFromSlicesDoNotExceedTheClock(t *testing.T) {
	build := func(seenMS float64, weighted bool) *Report {
		lo, hi := 20_000.0, 28_000.0
		b := &builder{weighted: weighted, report: &Report{Shares: &explain.Shares{OperatorsMS: seenMS}, Operators: []Operator{
			{Name: "Engine::execute", TotalMS: 30_000, SelfMS: 6_000, TotalLoMS: &lo, TotalHiMS: &hi}, {Name: "aten::mm", TotalMS: 24_000,
				SelfMS: 24_000}}}}
		b.closeOperators()
		return b.report
	}
	r := build(20_000, true)
	sum := 0.0
	for _, o := range r.Operators {
		sum += o.SelfMS
	}
	if math.Abs(sum-20_000) > 1e-6 || r.Operators[0].TotalMS > 20_000+1e-6 || r.Operators[1].TotalMS > r.Operators[0].TotalMS ||
		*r.Operators[0].TotalHiMS > 20_000 || r.OperatorsClosed == 0 {
		t.Errorf("%g ms, %+v", sum, r.Operators)
	}
	for _, r := range []*Report{build(40_000, true), build(20_000, false)} {
		if r.OperatorsClosed != 0 || r.Operators[0].TotalMS != 30_000 {
			t.Errorf("%+v", r.Operators)
		}
	}
}
