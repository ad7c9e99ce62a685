package evidence

import "testing"

// TestCompiledProgramsThatRunAreNoCompilation: the frames are those of a job under
// torch.compile of PyTorch 2.15, of 2.1, of JAX and of Triton.
func TestCompiledProgramsThatRunAreNoCompilation(t *testing.T) {
	const packages = "/venv/lib/python3.11/site-packages/"
	for _, c := range []struct {
		function, file string
		compiles       bool
	}{
		{"ConvertFrame.__call__", packages + "torch/_dynamo/convert_frame.py", true},
		{"_compile.<locals>.compile_inner", packages + "torch/_dynamo/convert_frame.py", true},
		{"compile_fx_inner", packages + "torch/_inductor/compile_fx.py", true},
		{"GraphLowering.run_node", packages + "torch/_inductor/graph.py", true},
		{"aot_dispatch_autograd", packages + "torch/_functorch/_aot_autograd/jit_compile_runtime_wrappers.py", true},
		{"trace", packages + "torch/jit/_trace.py", true},
		{"compile", packages + "triton/compiler/compiler.py", true},
		{"backend_compile", packages + "jax/_src/compiler.py", true},
		{"lower_jaxpr_to_module", packages + "jax/_src/interpreters/mlir.py", true},

		{"DisableContext.__call__.<locals>._fn", packages + "torch/_dynamo/eval_frame.py", false},
		{"_TorchDynamoContext.__call__.<locals>.compile_wrapper", packages + "torch/_dynamo/eval_frame.py", false},
		{"CompiledFxGraph.__call__", packages + "torch/_inductor/output_code.py", false},
		{"CompiledFxGraph.__call__", packages + "torch/_inductor/codecache.py", false},
		{"align_inputs.<locals>.run", packages + "torch/_inductor/compile_fx.py", false},
		{"aot_module_simplified.<locals>.forward", packages + "torch/_functorch/aot_autograd.py", false},
		{"_create_runtime_wrapper.<locals>.runtime_wrapper", packages + "torch/_functorch/_aot_autograd/runtime_wrappers.py", false},
		{"_compiled_forward", packages + "torch/_functorch/_aot_autograd/codegen.py:codegen(compiled_function_forward)", false},
		{"call_func_at_runtime_with_args", packages + "torch/_functorch/_aot_autograd/utils.py", false},
		{"record_compilation_metrics", packages + "torch/_dynamo/utils.py", false},
		{"CompiledKernel.run", packages + "triton/compiler/compiler.py", false},
		{"ExecuteReplicated.__call__", packages + "jax/_src/interpreters/pxla.py", false},
		{"MeshExecutable.call", packages + "jax/_src/interpreters/pxla.py", false},
		{"compile", "/home/me/train.py", false},
	} {
		if Compiles(c.function, c.file) != c.compiles {
			t.Errorf("%s of %s: compiles is %v", c.function, c.file, !c.compiles)
		}
	}
}
