package rules

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// FirstStep: the first step takes many times the others. It happens once: no
// headroom.
var FirstStep = evidence.Rule{
	Name: "first_step", Title: "a slow first step", OfSteps: true, Look: lookFirstStep,
	Thresholds: []thresholds.Threshold{firstStepRatio},
}

var firstStepRatio = thresholds.Threshold{Name: "first_step_ratio", Default: 5, Why: "The first step against the median step."}

func lookFirstStep(r *evidence.Recording) ([]evidence.Candidate, error) {
	var periods []int64
	var first *int64
	for _, s := range r.Thread.Of(steps.Train, steps.Warmup, steps.Evaluate) {
		if s.Period > 0 {
			if first == nil {
				p := s.Period
				first = &p
			}
			periods = append(periods, s.Period)
		}
	}
	median := steps.Median(periods)
	if first == nil || len(periods) < 3 || float64(*first) < r.Thresholds.Of(firstStepRatio)*median {
		return nil, nil
	}
	return []evidence.Candidate{{
		Name: "the first step",
		Evidence: evidence.Query(fmt.Sprintf("SELECT min(ts_ns) AS began_ns, %d AS first_step_ns, %.0f AS median_step_ns\n"+
			"FROM span WHERE pid = %d", *first, median, r.Thread.PID)),
		Advice: fmt.Sprintf("The first step takes %s, the median one %s: compilation, allocation, caches. Keep compiled code "+
			"(TORCHINDUCTOR_CACHE_DIR, jax_compilation_cache_dir), and leave it out of measurements.",
			evidence.Time(float64(*first)), evidence.Time(median)),
	}}, nil
}
