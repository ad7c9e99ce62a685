// Package torch has the tables of PyTorch: operators, autograd, scopes, allocators, what
// torch.compile tells. The symbols are those of 1.13.1 (Debian) and 2.15.0 (PyPI), read from their
// dynamic symbol tables; prefixes stop before the parameter list, whose spelling differs between
// versions (c10::optional and std::optional, shared_ptr and intrusive_ptr, the two std::string
// ABIs).
//
// The package is no part of the public API: it may change with any version.
package torch

import . "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"

// Groups lists the groups of this table, in the order in which they are shown.
func Groups() []Group {
	return []Group{scopeGroup, compileGroup, backwardGroup, operatorGroup, autogradGroup, functionGroup, memoryGroup, deviceMemoryGroup,
		outOfMemoryGroup}
}

const (
	// sinceTorch2 is a symbol that 2.0 added. 1.13 has record_function_enter_new,
	// but its Python never calls it: no scopes, and no use in watching them end.
	sinceTorch2 = "_ZN2at4_ops28scaled_dot_product_attention4callE"

	recordFunctionExit = "_ZN5torch8autograd8profilerL24record_function_exit_newERKN3c1013intrusive_ptr"
)

var scopeGroup = Group{
	Name:   "scope",
	Anchor: true,
	Help:   "framework scopes: DataLoader, optimizer step, zero_grad, record_function (PyTorch 2)",
	Tier:   Anchor,
	Functions: []Function{
		{
			// c10::intrusive_ptr<PythonRecordFunction> record_function_enter_new(
			//     const std::string& name, const optional<std::string>& args)
			// The result comes back behind a hidden first argument.
			Library: "libtorch_cpu.so",
			Symbol:  "_ZN5torch8autograd8profiler25record_function_enter_new", Requires: sinceTorch2,
			Layer: "scope", Name: FromText, Label: "record_function",
			Action: ScopeBegin, End: ExitSites,
			Values: []Value{Out(FieldScopeKey, 0)},
			Text:   CxxString, TextArg: 1,
		},
		{
			// static void record_function_exit_new(const intrusive_ptr<PythonRecordFunction>&):
			// called for these scopes alone, where the build kept its local symbols.
			// It jumps into RecordFunction::end(this).
			Library: "libtorch_cpu.so",
			Symbol:  recordFunctionExit, Requires: sinceTorch2,
			Layer: "scope", Label: "record_function_exit_new",
			Action: ScopeEnd, AtTailJump: true, Values: []Value{Reg(FieldScopeKey, 0)}, KeyOffset: -16,
		},
		{
			// at::RecordFunction::end(this), else: it runs for every RecordFunction
			// there is, ten times as often. It lies 16 bytes into
			// PythonRecordFunction, behind the intrusive_ptr_target's vtable pointer
			// and reference counts.
			Library: "libtorch_cpu.so",
			Symbol:  "_ZN2at14RecordFunction3endEv", Exact: true, Requires: sinceTorch2, Unless: recordFunctionExit,
			Layer: "scope", Label: "RecordFunction::end",
			Action: ScopeEnd, Values: []Value{Reg(FieldScopeKey, 0)}, KeyOffset: -16,
		},
	},
}

var backwardGroup = Group{
	Name:   "backward",
	Anchor: true,
	Help:   "backward passes: one span per call of the autograd engine",
	Tier:   Anchor,
	Functions: []Function{{
		Library: "libtorch_cpu.so",
		Symbol:  "_ZN5torch8autograd6Engine7execute",
		Layer:   "autograd", Category: "backward", Label: "Engine::execute",
		Action: Span, End: ExitSites, Step: true,
	}},
}

var operatorGroup = Group{
	Name: "op",
	Help: "every operator: at::_ops::*::call, and what torch.compile makes of them for a CPU",
	Tier: Detail,
	Functions: []Function{
		{
			Library: "libtorch_cpu.so",
			Symbol:  "_ZN2at4_ops", Suffix: "4callE",
			Layer: "op", Name: FromOperator,
			Action: Span, End: ExitSites,
		},
		{
			// Inductor compiles each kernel into an extension module of its own
			// (torch/_inductor/codecache.py, CppPythonBindingsCodeCache), where all are
			// called kernel. It throws where an index is out of bounds.
			Anywhere: "PyInit_kernel", Holds: "_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR",
			Symbol: "kernel", Exact: true,
			Layer: "op", Category: "fused", Name: FromCaller, Label: "cpp_fused",
			Action: Span, End: ExitSites, ExpensiveEnd: true,
		},
	},
}

// Where torch::autograd::Node keeps its 64-bit sequence_nr_ (all ones for
// AccumulateGrad): behind the vtable pointer and, while nodes were held by
// shared_ptr, their weak reference to themselves (read from a live 1.13.1);
// behind the vtable pointer and one word of reference counts since they are
// held by intrusive_ptr (read from a live 2.15.0).
const nodeSequence = 24

var nodeIsIntrusive = Variant{
	Symbol: "_ZN5torch8autograd4impl20set_grad_accumulatorERKN2at6TensorEN3c1018weak_intrusive_ptr",
	Offset: 16,
}

// And its thread_id_: at::RecordFunction::currentThreadId() of the thread that made
// it, 1, 2, … in the order in which threads first asked (read from the nodes of four
// threads of a live 1.13.1 and 2.15.0). The sequence numbers of each thread begin at 0.
const nodeThread = nodeSequence + 24

var nodeThreadIsIntrusive = Variant{Symbol: nodeIsIntrusive.Symbol, Offset: nodeIsIntrusive.Offset + 24}

var autogradGroup = Group{
	Name: "autograd",
	Help: "every node of a backward pass, with its sequence number",
	Tier: Detail,
	With: []string{"function"},
	Functions: []Function{
		{
			// void Engine::evaluate_function(this, shared_ptr<GraphTask>&, Node*, …).
			Library: "libtorch_cpu.so",
			Symbol:  "_ZN5torch8autograd6Engine17evaluate_function",
			Layer:   "autograd", Category: "node", Name: FromVTable, Label: "Engine::evaluate_function",
			Action: Span, End: ExitSites,
			Values: []Value{Mem(FieldNodeVTable, 2, 0), Mem(FieldSequence, 2, nodeSequence, nodeIsIntrusive),
				Mem(FieldForwardThread, 2, nodeThread, nodeThreadIsIntrusive)},
		},
		{
			// void impl::set_gradient_edge(const Variable&, Edge edge): what an
			// operator that will be differentiated calls for its results. The Edge
			// comes behind a pointer and begins with the Node.
			// (at::sequence_number::get_and_increment says the same, but only at its
			// return, and it has no instruction that the kernel emulates: 20 µs.)
			Library: "libtorch_cpu.so",
			Symbol:  "_ZN5torch8autograd4impl17set_gradient_edge",
			Layer:   "autograd", Label: "set_gradient_edge",
			Action: Sequence,
			Values: []Value{Mem2(FieldSequence, 1, 0, nodeSequence, nodeIsIntrusive),
				Mem2(FieldForwardThread, 1, 0, nodeThread, nodeThreadIsIntrusive)},
		},
		// What a node runs of Python beside the backward of a torch.autograd.Function: hooks.
		// What those call has lines of its own.
		runsPython("PyFunctionPreHook", "17PyFunctionPreHookclERKSt6vectorIN2at6TensorESaIS4_EE"),
		runsPython("PyFunctionTensorPreHook", "23PyFunctionTensorPreHookclERKSt6vectorIN2at6TensorESaIS4_EE"),
		runsPython("PyFunctionPostHook", "18PyFunctionPostHookclERKSt6vectorIN2at6TensorESaIS4_EES8_"),
		runsPython("PyFunctionTensorPostAccGradHooks", "32PyFunctionTensorPostAccGradHooksclERKN2at6TensorE"),
	},
}

func runsPython(label, symbol string) Function {
	return Function{
		Library: "libtorch_python.so",
		Symbol:  "_ZN5torch8autograd" + symbol, Exact: true,
		Layer: "autograd", Label: label,
		Action: RunsPython,
	}
}

var functionGroup = Group{
	Name: "function",
	Help: "torch.autograd.Function, forward and backward: compiled graphs (CompiledFunction), functions written in Python",
	Tier: Anchor,
	Functions: []Function{
		// PyObject *THPFunction_apply(PyObject *cls, PyObject *inputs), where the build
		// kept its local symbols: in an unnamed namespace since 2.x, which it was not in 1.13.
		pythonFunction("THPFunction_apply", "_Z17THPFunction_applyP7_object", Reg(FieldPythonType, 0)),
		pythonFunction("THPFunction_apply", "_ZN12_GLOBAL__N_117THPFunction_applyEP7_object", Reg(FieldPythonType, 0)),
		// variable_list PyNode::apply(this, variable_list&&), whose result comes back behind a
		// hidden first argument: its class is that of the context, PyNode::obj, whose place
		// in the node differs from version to version. is_traceable() asks it first of all.
		pythonFunction("PyNode::apply", "_ZN5torch8autograd6PyNode5applyEOSt6vectorIN2at6TensorESaIS4_EE",
			MemberOf2(FieldPythonType, 1, "_ZN5torch8autograd6PyNode12is_traceableEv", objectType)),
	},
}

// Where PyObject has its type: ob_type, behind the reference count. Builds without a GIL
// keep it elsewhere.
const objectType = 8

// pythonFunction is one half of a torch.autograd.Function, which is called what the
// profiler of PyTorch calls it: by the class, NAME forward and NAMEBackward backward.
func pythonFunction(label, symbol string, class Value) Function {
	return Function{
		Library: "libtorch_python.so", Symbol: symbol,
		Layer: "scope", Category: "function", Name: FromText, Label: label,
		Action: Span, End: ExitSites, ExpensiveEnd: true, Python: true,
		Values: []Value{class}, Text: PythonType, TextArg: 0,
	}
}

// freeCPU is in libc10 of 1.13 and of 2.15.
const freeCPU = "_ZN3c108free_cpuEPv"

var memoryGroup = Group{
	Name:   "memory",
	Anchor: true,
	Help:   "every allocation and free of a CPU tensor's storage",
	Tier:   Detail,
	With:   []string{"out-of-memory"},
	Functions: []Function{
		{
			// void *c10::alloc_cpu(size_t nbytes): throws where there is no room. Its caller
			// goes on to New, which has the address: until then it takes.
			Library: "libc10.so",
			Symbol:  "_ZN3c109alloc_cpuEm", Exact: true,
			Layer: "runtime", Category: "alloc", Label: "alloc_cpu",
			Action: Mark,
		},
		{
			// void ProfiledCPUMemoryReporter::New(this, void* ptr, size_t nbytes)
			Library: "libc10.so",
			Symbol:  "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm", Exact: true,
			Layer: "runtime", Category: "alloc", Label: "ProfiledCPUMemoryReporter::New",
			Action: Event, SinceMark: true,
			Values: []Value{Reg(FieldAddress, 1), Reg(FieldBytes, 2)},
			Memory: &Memory{Space: "host", Level: "allocator", Action: "alloc"},
		},
		{
			// void c10::free_cpu(void *data): a jump to the C library's free, and nothing
			// else. What it jumps to neither throws nor runs the caller's code, so here a
			// return probe is as harmless as on that. Its caller has called Delete just
			// before.
			Library: "libc10.so",
			Symbol:  freeCPU, Exact: true,
			Layer: "runtime", Category: "free", Label: "free_cpu",
			Action: Timed, End: Return, JumpsTo: "free",
			Values: []Value{Reg(FieldAddress, 0)},
			Memory: &Memory{Space: "host", Level: "allocator", Action: "free"},
		},
		{
			Library: "libc10.so", Unless: freeCPU,
			Symbol: "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv", Exact: true,
			Layer: "runtime", Category: "free", Label: "ProfiledCPUMemoryReporter::Delete",
			Action: Event,
			Values: []Value{Reg(FieldAddress, 1)},
			Memory: &Memory{Space: "host", Level: "allocator", Action: "free"},
		},
	},
}

var deviceMemoryGroup = Group{
	Name:   "device-memory",
	Anchor: true,
	Help:   "every allocation and free of the caching allocator of a device",
	Tier:   Detail,
	With:   []string{"out-of-memory"},
	Functions: []Function{{
		// void c10::reportMemoryUsageToProfiler(void* ptr, int64 alloc_size,
		//     size_t total_allocated, size_t total_reserved, Device device)
		// The CPU allocator calls it too while the job itself profiles memory;
		// those calls are dropped by their device type, since New saw them.
		Library: "libc10.so",
		Symbol:  "_ZN3c1027reportMemoryUsageToProfilerEPv",
		Layer:   "runtime", Label: "reportMemoryUsageToProfiler",
		Action: Event,
		Values: []Value{
			Reg(FieldAddress, 0), Reg(FieldSignedBytes, 1), Reg(FieldTotalAllocated, 2),
			Reg(FieldTotalReserved, 3), Reg(FieldTorchDevice, 4),
		},
		Memory: &Memory{Space: "device", Level: "allocator"},
	}},
}

// Apart from the allocations, which may be in slices: it happens once, and a recording is
// looked at for it.
var outOfMemoryGroup = Group{
	Name:   "out-of-memory",
	Anchor: true,
	Help:   "allocations that PyTorch's allocators have no room for",
	Tier:   Anchor,
	Functions: []Function{
		{
			// Called where the exception of alloc_cpu is caught, below whoever asked.
			Library: "libc10.so",
			Symbol:  "_ZN3c1025ProfiledCPUMemoryReporter11OutOfMemoryEm", Exact: true,
			Layer: "runtime", Category: "alloc", Label: "ProfiledCPUMemoryReporter::OutOfMemory",
			Action: Urgent, // a job may end by it, and its code has no name then
			Values: []Value{Reg(FieldBytes, 1)},
			Memory: &Memory{Space: "host", Level: "allocator", Action: "out_of_memory"},
		},
		{
			// void c10::reportOutOfMemoryToProfiler(int64_t alloc_size, size_t total_allocated,
			//     size_t total_reserved, Device device)
			// The CPU allocator calls it too while the job itself profiles memory;
			// those calls are dropped by their device type, since OutOfMemory saw them.
			Library: "libc10.so",
			Symbol:  "_ZN3c1027reportOutOfMemoryToProfilerE",
			Layer:   "runtime", Category: "alloc", Label: "reportOutOfMemoryToProfiler",
			Action: Urgent,
			Values: []Value{Reg(FieldBytes, 0), Reg(FieldTotalAllocated, 1), Reg(FieldTotalReserved, 2), Reg(FieldTorchDevice, 3)},
			Memory: &Memory{Space: "device", Level: "allocator", Action: "out_of_memory"},
		},
	},
}
