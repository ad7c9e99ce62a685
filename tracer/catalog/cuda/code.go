package cuda

import (
	"slices"

	. "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

var codeGroup = Group{
	Name:   "cuda-code",
	Anchor: true,
	Help:   "CUDA driver: what gives launches their names, devices and graphs: modules, contexts, streams, captures",
	Tier:   Anchor,
	Functions: slices.Concat(
		modules, contexts, streams, graphs,
	),
}

var modules = slices.Concat(
	cuda("cuInit", "context", "", Captures(Reg32(FieldFlags, 0))),
	cuda("cuModuleLoad", "module", "", Changes(LoadsModule, Out(FieldModule, 0))),
	cuda("cuModuleLoadData", "module", "", Changes(LoadsModule, Out(FieldModule, 0))),
	cuda("cuModuleLoadDataEx", "module", "", Changes(LoadsModule, Out(FieldModule, 0))),
	cuda("cuModuleLoadFatBinary", "module", "", Changes(LoadsModule, Out(FieldModule, 0))),
	cuda("cuModuleUnload", "module", "", Changes(UnloadsModule, Reg(FieldModule, 0))),
	// cuModuleGetFunction(function *, module, const char *name)
	cuda("cuModuleGetFunction", "module", "", NamedBy(2, Out(FieldHandle, 0), Reg(FieldModule, 1))),
	// 12.0: a library is a module for every context, a kernel its function.
	cuda("cuLibraryLoadData", "module", "", Changes(LoadsModule, Out(FieldModule, 0))),
	cuda("cuLibraryLoadFromFile", "module", "", Changes(LoadsModule, Out(FieldModule, 0))),
	cuda("cuLibraryUnload", "module", "", Changes(UnloadsModule, Reg(FieldModule, 0))),
	cuda("cuLibraryGetKernel", "module", "", NamedBy(2, Out(FieldHandle, 0), Reg(FieldModule, 1))),
	cuda("cuLibraryGetModule", "module", "", Captures(Out(FieldHandle, 0), Reg(FieldModule, 1))),
	cuda("cuLibraryEnumerateKernels", "module", "", Captures(Reg(FieldModule, 2))),
	// cuKernelGetFunction(function *, kernel)
	cuda("cuKernelGetFunction", "module", "", Changes(LinksKernel, Out(FieldHandle, 0), Reg(FieldKernel, 1))),
	// cuFuncGetName(const char **name, function): the name comes back
	cuda("cuFuncGetName", "module", "", tellsName),
	cuda("cuKernelGetName", "module", "", tellsName),
	cuda("cuGetProcAddress", "module", "|_v2"),
)

func tellsName(f *Function) {
	f.Effect, f.Values = NamesKernel, []Value{Out(FieldNone, 0), Reg(FieldHandle, 1)}
	f.Text, f.TextArg = CStringOut, 0
}

var contexts = slices.Concat(
	// cuCtxCreate(context *, flags, device); _v3 has (…, parameters, n, flags,
	// device) since 11.4, _v4 (…, parameters, flags, device) since 12.5.
	cuda("cuCtxCreate", "context", "|_v2", Changes(CreatesContext, Out(FieldContext, 0), Int32(FieldDeviceID, 2))),
	cuda("cuCtxCreate", "context", "_v3", Changes(CreatesContext, Out(FieldContext, 0), Int32(FieldDeviceID, 4))),
	cuda("cuCtxCreate", "context", "_v4", Changes(CreatesContext, Out(FieldContext, 0), Int32(FieldDeviceID, 3)), Since("12.5")),
	cuda("cuCtxDestroy", "context", "|_v2", Changes(DestroysContext, Reg(FieldContext, 0))),
	cuda("cuCtxSetCurrent", "context", "", Changes(SetsContext, Reg(FieldContext, 0))),
	cuda("cuCtxPushCurrent", "context", "|_v2", Changes(PushesContext, Reg(FieldContext, 0))),
	cuda("cuCtxPopCurrent", "context", "|_v2", Changes(PopsContext, Out(FieldContext, 0))),
	cuda("cuCtxGetDevice", "context", "", Changes(NamesDevice, Out32(FieldDeviceID, 0))),
	cuda("cuDevicePrimaryCtxRetain", "context", "", Changes(NamesContext, Out(FieldContext, 0), Int32(FieldDeviceID, 1))),
	cuda("cuDevicePrimaryCtxRelease", "context", "|_v2", Captures(Int32(FieldDeviceID, 0))),
	cuda("cuDevicePrimaryCtxReset", "context", "|_v2", Captures(Int32(FieldDeviceID, 0))),
)

var streams = slices.Concat(
	cuda("cuStreamCreate", "stream", "", Changes(CreatesStream, Out(FieldStream, 0))),
	cuda("cuStreamCreateWithPriority", "stream", "", Changes(CreatesStream, Out(FieldStream, 0))),
	cuda("cuStreamDestroy", "stream", "|_v2", Changes(DestroysStream, Reg(FieldStream, 0))),
	// cuStreamBeginCapture(stream[, mode]), cuStreamEndCapture(stream, graph *)
	cuda("cuStreamBeginCapture", "graph", "|_ptsz|_v2|_v2_ptsz", Changes(BeginsCapture, Reg(FieldStream, 0))),
	// cuStreamBeginCaptureToGraph(stream, graph, …): a graph that is there already
	cuda("cuStreamBeginCaptureToGraph", "graph", "|_ptsz", Changes(BeginsCapture, Reg(FieldStream, 0), Reg(FieldGraph, 1))),
	cuda("cuStreamEndCapture", "graph", "|_ptsz", Changes(EndsCapture, Reg(FieldStream, 0), Out(FieldGraph, 1))),
)

// The runtime library, libcudart, sees each launch a second time, on its way to
// the driver. It is probed only for what the driver is not told: which host
// function stands for the kernel.
var stubsGroup = Group{
	Name:     "cuda-stubs",
	Help:     "CUDA runtime library: names of kernels by their host functions, at the price of a second probe a launch",
	Tier:     Detail,
	OnDemand: true,
	Launches: true,
	With:     []string{"cuda"},
	Functions: slices.Concat(
		cudart("cudaLaunchKernel", "|_ptsz", 0),
		cudart("cudaLaunchCooperativeKernel", "|_ptsz", 0),
		cudart("cudaLaunchKernelExC", "|_ptsz", 1),
		[]Function{{
			// __cudaRegisterFunction(handle, hostFun, deviceFun, deviceName, …)
			Library: "libcudart.so", Symbol: "__cudaRegisterFunction", Exact: true,
			Layer: "runtime", Category: "module", Runtime: "cuda", Label: "__cudaRegisterFunction",
			Action: Span, End: Return, Effect: NamesKernel, Values: []Value{Reg(FieldHostStub, 1)},
			Text: CStringLong, TextArg: 3,
		}},
	),
}

// cudart is a launch of the runtime library, whose argument n is the host function.
func cudart(name, variants string, n uint8) []Function {
	return EntryPoints(Function{
		Library: "libcudart.so", Label: name, Category: "launch", Runtime: "cuda",
	}, variants, []func(*Function){func(f *Function) {
		f.Action, f.End, f.StatusOK = Event, NoEnd, false
		f.Effect, f.Values = StubHint, []Value{Reg(FieldHostStub, n)}
	}})
}
