package evidence

import "regexp"

// compilers are functions that are on the stack only while a program is being compiled,
// by their files. What compiled programs run through lies in the same packages, some of
// it in the same files: entry points, guards, wrappers, launches.
var compilers = []struct{ file, functions, butNot *regexp.Regexp }{
	// Dynamo calls these for code that it has not compiled, or not for these arguments.
	{regexp.MustCompile(`torch/_dynamo/(convert_frame|symbolic_convert|output_graph)\.py$`), nil, nil},
	{regexp.MustCompile(`torch/_inductor/(compile_fx|graph|scheduler|lowering|codecache|async_compile|cpp_builder)\.py$`), nil,
		regexp.MustCompile(`(^|\.)(run|__call__|new_model|_run_from_cache|current_callable|load_by_key_path|__getattr__)$`)},
	{regexp.MustCompile(`torch/_functorch/`), regexp.MustCompile(`(^|\.)(aot_dispatch_\w+|create_aot_dispatcher_function|aot_stage\d_\w+)$`),
		nil},
	{regexp.MustCompile(`torch/jit/_trace\.py$`), regexp.MustCompile(`(^|\.)_?trace\w*$`), nil},
	{regexp.MustCompile(`torch/jit/(_script|_recursive|frontend)\.py$`),
		regexp.MustCompile(`(^|\.)(_?script(_impl)?|create_script_\w+|try_compile_fn|get_jit_def|get_jit_class_def)$`), nil},
	{regexp.MustCompile(`triton/(compiler/|runtime/jit\.py$)`), regexp.MustCompile(`compile|make_ir`), regexp.MustCompile(`CompiledKernel`)},
	{regexp.MustCompile(`jax/_src/compiler\.py$`), regexp.MustCompile(`compile`), nil},
	{regexp.MustCompile(`jax/_src/(interpreters/|pjit\.py$|dispatch\.py$)`),
		regexp.MustCompile(`(^|[._])(lower|compile|trace_to_jaxpr|from_hlo)`), nil},
}

// Compiles reports whether a frame is a compiler of a framework at work.
func Compiles(function, file string) bool {
	for _, c := range compilers {
		if c.file.MatchString(file) {
			return (c.functions == nil || c.functions.MatchString(function)) && (c.butNot == nil || !c.butNot.MatchString(function))
		}
	}
	return false
}
