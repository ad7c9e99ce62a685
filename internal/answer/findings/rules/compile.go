package rules

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
)

// Recompilation: a compiler of the framework's is at work while steps run that
// are no longer warm-up.
var Recompilation = evidence.Rule{
	Name: "recompilation", Title: "compilation in the step", OfSteps: true, Placed: true, Look: lookRecompilation,
	Thresholds: []thresholds.Threshold{compilePercent},
}

var compilePercent = thresholds.Threshold{Name: "compile_percent", Default: 1, Why: "Compilers at work while steps run."}

func lookRecompilation(r *evidence.Recording) ([]evidence.Candidate, error) {
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
	if r.InSteps(at) < r.Thresholds.Of(compilePercent) {
		return nil, nil
	}
	return []evidence.Candidate{{
		Name: "compilation in the step", Place: evidence.Heaviest(weights), Replace: r.IntervalsGone(at),
		Evidence: r.SamplesThat(fmt.Sprintf("s.tid = %d AND list_bool_or(list_transform(st.frames, x -> "+
			"regexp_matches(coalesce(x.file, ''), 'torch/_dynamo/convert_frame|torch/_inductor/(compile_fx|graph|scheduler|codecache)|"+
			"torch/jit/(_trace|_script|_recursive|frontend)|triton/compiler|jax/_src/(compiler|interpreters)')))", r.Thread.TID)),
		Advice: "The program is compiled again while it runs. Find what changes from step to step (TORCH_LOGS=recompiles, " +
			"jax_explain_cache_misses): shapes, Python numbers, flags; mark them dynamic or keep them the same.",
	}}, nil
}
