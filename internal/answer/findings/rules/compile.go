package rules

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// firstStep: the first step takes many times the others. It happens once: no
// headroom.
func firstStep(r *evidence.Recording) []evidence.Candidate {
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
	if first == nil || len(periods) < 3 || float64(*first) < r.Thresholds.FirstStepRatio*median {
		return nil
	}
	return []evidence.Candidate{{
		Rule: "first_step", Name: "the first step",
		Evidence: fmt.Sprintf("SELECT min(ts_ns) AS began_ns, %d AS first_step_ns, %.0f AS median_step_ns\n"+
			"FROM span WHERE pid = %d", *first, median, r.Thread.PID),
		Advice: fmt.Sprintf("The first step takes %s, the median one %s: compilation, allocation, caches. Keep compiled code "+
			"(TORCHINDUCTOR_CACHE_DIR, jax_compilation_cache_dir), and leave it out of measurements.",
			evidence.Time(float64(*first)), evidence.Time(median)),
	}}
}

// recompilation: a compiler of the framework's is at work while steps run that
// are no longer warm-up.
func recompilation(r *evidence.Recording) []evidence.Candidate {
	var at []evidence.Interval
	weights := map[evidence.Place]int64{}
	for _, s := range r.Samples {
		if s.TID != r.Thread.TID || !s.Stack.Compiling || r.At(s.From) == nil {
			continue
		}
		v := evidence.Interval{From: s.From, To: s.To}
		if s.OnCPU {
			v = evidence.Interval{From: s.From - s.Weight()/2, To: s.From + s.Weight() - s.Weight()/2}
		}
		at = append(at, v)
		weights[s.Stack.Place] += s.Weight()
	}
	delete(weights, evidence.Place{})
	if r.InSteps(at) < r.Thresholds.CompilePercent {
		return nil
	}
	return []evidence.Candidate{{
		Rule: "recompilation", Name: "compilation in the step", Place: evidence.Heaviest(weights), Replace: r.IntervalsGone(at),
		Evidence: r.SamplesSQL(fmt.Sprintf("s.tid = %d AND list_bool_or(list_transform(st.frames, x -> "+
			"regexp_matches(coalesce(x.file, ''), 'torch/_dynamo/convert_frame|torch/_inductor/(compile_fx|graph|scheduler|codecache)|torch/jit/(_trace|_script|_recursive|frontend)|triton/compiler|jax/_src/(compiler|interpreters)')))", r.Thread.TID)),
		Advice: "The program is compiled again while it runs. Find what changes from step to step (TORCH_LOGS=recompiles, " +
			"jax_explain_cache_misses): shapes, Python numbers, flags; mark them dynamic or keep them the same.",
	}}
}
