package torch

import . "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"

// torch.compile from outside: what Dynamo and Inductor tell of their own work. Python code
// cannot be probed, but each stage that takes long is timed by a wait counter, an object of
// C++ that lives as long as the stage does (torch/_dynamo/utils.py, dynamo_timed).

// compileStages begins the names of these counters. Those of C++ have two underscores in
// theirs, and are made once for many waits.
const compileStages = "pytorch.wait_counter."

var compileGroup = Group{
	Name: "compile",
	Help: "torch.compile at work: frames, backward passes and graphs that are compiled, stage by stage",
	Tier: Anchor,
	Functions: []Function{
		{
			// WaitCounterHandle(this, std::string_view name), of which libstdc++ keeps the
			// length first; behind it is Python's string, which ends with a NUL.
			Library: "libc10.so",
			Symbol:  "_ZN3c107monitor17WaitCounterHandleC1ESt17basic_string_view",
			Layer:   "scope", Category: "compile", Name: FromText, Label: "WaitCounterHandle",
			Action: ScopeBegin, End: ExitSites, ExpensiveEnd: true,
			Values: []Value{Out(FieldScopeKey, 0)}, // what it refers to: one thing for each name
			Text:   CString, TextArg: 2, TextPrefix: compileStages,
		},
		{
			// void WaitCounterHandle::stop(this, const SmallVector<intptr_t>&)
			Library: "libc10.so",
			Symbol:  "_ZN3c107monitor17WaitCounterHandle4stopE",
			Layer:   "scope", Label: "WaitCounterHandle::stop",
			Action: ScopeEnd, Values: []Value{Mem(FieldScopeKey, 0, 0)},
		},
		{
			// CacheEntry* create_cache_entry(ExtraState*, PyObject* guarded_code, PyObject* backend):
			// what was compiled is kept with its code object, whose ExtraState is always the
			// same. Another for the same code is a recompilation. Its symbol is local.
			Library: "libtorch_python.so",
			Symbol:  "create_cache_entry", Exact: true,
			Layer: "scope", Category: "compile", Label: "create_cache_entry",
			Action: Span, End: ExitSites, ExpensiveEnd: true,
			Values: []Value{Reg(FieldHandle, 0)},
		},
	},
}
