package findings

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/steps"
)

// firstStep: the first step takes many times the others. It happens once: no
// headroom.
func firstStep(r *recording) []candidate {
	var periods []int64
	var first *int64
	for _, s := range r.thread.Of(steps.Train, steps.Warmup, steps.Evaluate) {
		if s.Period > 0 {
			if first == nil {
				p := s.Period
				first = &p
			}
			periods = append(periods, s.Period)
		}
	}
	median := steps.Median(periods)
	if first == nil || len(periods) < 3 || float64(*first) < r.thresholds.FirstStepRatio*median {
		return nil
	}
	return []candidate{{
		rule: "first_step", name: "the first step",
		evidence: fmt.Sprintf("SELECT min(ts_ns) AS began_ns, %d AS first_step_ns, %.0f AS median_step_ns\n"+
			"FROM span WHERE pid = %d", *first, median, r.thread.PID),
		advice: fmt.Sprintf("The first step takes %s, the median one %s: compilation, allocation, caches. Keep compiled code "+
			"(TORCHINDUCTOR_CACHE_DIR, jax_compilation_cache_dir), and leave it out of measurements.",
			text(float64(*first)), text(median)),
	}}
}

// recompilation: a compiler of the framework's is at work while steps run that
// are no longer warm-up.
func recompilation(r *recording) []candidate {
	var at []interval
	weights := map[place]int64{}
	for _, s := range r.samples {
		if s.TID != r.thread.TID || !s.Stack.compiling || r.at(s.From) == nil {
			continue
		}
		v := interval{s.From, s.To}
		if s.OnCPU {
			v = interval{s.From - s.weight()/2, s.From + s.weight() - s.weight()/2}
		}
		at = append(at, v)
		weights[s.Stack.place] += s.weight()
	}
	delete(weights, place{})
	if r.inSteps(at) < r.thresholds.CompilePercent {
		return nil
	}
	return []candidate{{
		rule: "recompilation", name: "compilation in the step", place: heaviest(weights), replace: r.intervalsGone(at),
		evidence: r.samplesSQL(fmt.Sprintf("s.tid = %d AND list_bool_or(list_transform(st.frames, x -> "+
			"regexp_matches(coalesce(x.file, ''), 'torch/_(dynamo|inductor|functorch)/|jax/_src/')))", r.thread.TID)),
		advice: "The program is compiled again while it runs. Find what changes from step to step (TORCH_LOGS=recompiles, " +
			"jax_explain_cache_misses): shapes, Python numbers, flags; mark them dynamic or keep them the same.",
	}}
}
