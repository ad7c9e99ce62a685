package findings

import (
	"fmt"
	"regexp"

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

// compilers are functions that are on the stack only while a program is being compiled,
// by their files. What compiled programs run through lies in the same packages, some of
// it in the same files: entry points, guards, wrappers, launches.
var compilers = []struct{ file, functions, butNot *regexp.Regexp }{
	// Dynamo calls these for code that it has not compiled, or not for these arguments.
	{regexp.MustCompile(`torch/_dynamo/(convert_frame|symbolic_convert|output_graph)\.py$`), nil, nil},
	{regexp.MustCompile(`torch/_inductor/(compile_fx|graph|scheduler|lowering|codecache|async_compile|cpp_builder)\.py$`), nil,
		regexp.MustCompile(`(^|\.)(run|__call__|new_model|_run_from_cache|current_callable|load_by_key_path|__getattr__)$`)},
	{regexp.MustCompile(`torch/_functorch/`), regexp.MustCompile(`(^|\.)(aot_dispatch_\w+|create_aot_dispatcher_function|aot_stage\d_\w+)$`), nil},
	{regexp.MustCompile(`torch/jit/_trace\.py$`), regexp.MustCompile(`(^|\.)_?trace\w*$`), nil},
	{regexp.MustCompile(`torch/jit/(_script|_recursive|frontend)\.py$`), regexp.MustCompile(`(^|\.)(_?script(_impl)?|create_script_\w+|try_compile_fn|get_jit_def|get_jit_class_def)$`), nil},
	{regexp.MustCompile(`triton/(compiler/|runtime/jit\.py$)`), regexp.MustCompile(`compile|make_ir`), regexp.MustCompile(`CompiledKernel`)},
	{regexp.MustCompile(`jax/_src/compiler\.py$`), regexp.MustCompile(`compile`), nil},
	{regexp.MustCompile(`jax/_src/(interpreters/|pjit\.py$|dispatch\.py$)`), regexp.MustCompile(`(^|[._])(lower|compile|trace_to_jaxpr|from_hlo)`), nil},
}

// compiles says whether a frame is a compiler's at work.
func compiles(function, file string) bool {
	for _, c := range compilers {
		if c.file.MatchString(file) {
			return (c.functions == nil || c.functions.MatchString(function)) && (c.butNot == nil || !c.butNot.MatchString(function))
		}
	}
	return false
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
			"regexp_matches(coalesce(x.file, ''), 'torch/_dynamo/convert_frame|torch/_inductor/(compile_fx|graph|scheduler|codecache)|torch/jit/(_trace|_script|_recursive|frontend)|triton/compiler|jax/_src/(compiler|interpreters)')))", r.thread.TID)),
		advice: "The program is compiled again while it runs. Find what changes from step to step (TORCH_LOGS=recompiles, " +
			"jax_explain_cache_misses): shapes, Python numbers, flags; mark them dynamic or keep them the same.",
	}}
}
