package hip

import (
	"slices"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/cuda"
	. "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

var codeGroup = Group{
	Name:   "hip-code",
	Anchor: true,
	Help:   "HIP (AMD): what gives launches their names, devices and graphs: modules, devices, streams, captures",
	Tier:   Anchor,
	Functions: slices.Concat(
		hip("hipInit", "context", "", Captures(Reg32(FieldFlags, 0))),
		hip("hipModuleLoad", "module", "", Changes(LoadsModule, Out(FieldModule, 0))),
		hip("hipModuleLoadData", "module", "", Changes(LoadsModule, Out(FieldModule, 0))),
		hip("hipModuleLoadDataEx", "module", "", Changes(LoadsModule, Out(FieldModule, 0))),
		hip("hipModuleUnload", "module", "", Changes(UnloadsModule, Reg(FieldModule, 0))),
		hip("hipModuleGetFunction", "module", "", NamedBy(2, Out(FieldHandle, 0), Reg(FieldModule, 1))),
		// __hipRegisterFunction(modules, hostFunction, deviceFunction, deviceName, …)
		hip("__hipRegisterFunction", "module", "", func(f *Function) {
			NamedBy(3, Reg(FieldHostStub, 1))(f)
			f.StatusOK = false // it returns nothing
		}),
		hip("hipSetDevice", "context", "", Changes(SetsDevice, Int32(FieldDeviceID, 0))),
		hip("hipCtxCreate", "context", "", Changes(CreatesContext, Out(FieldContext, 0), Int32(FieldDeviceID, 2))),
		hip("hipCtxDestroy", "context", "", Changes(DestroysContext, Reg(FieldContext, 0))),
		hip("hipCtxSetCurrent", "context", "", Changes(SetsContext, Reg(FieldContext, 0))),
		hip("hipCtxPushCurrent", "context", "", Changes(PushesContext, Reg(FieldContext, 0))),
		hip("hipCtxPopCurrent", "context", "", Changes(PopsContext, Out(FieldContext, 0))),
		hip("hipDevicePrimaryCtxRetain", "context", "", Changes(NamesContext, Out(FieldContext, 0), Int32(FieldDeviceID, 1))),
		hip("hipStreamCreate", "stream", "", Changes(CreatesStream, Out(FieldStream, 0))),
		hip("hipStreamCreateWithFlags", "stream", "", Changes(CreatesStream, Out(FieldStream, 0))),
		hip("hipStreamCreateWithPriority", "stream", "", Changes(CreatesStream, Out(FieldStream, 0))),
		hip("hipExtStreamCreateWithCUMask", "stream", "", Changes(CreatesStream, Out(FieldStream, 0))),
		hip("hipStreamDestroy", "stream", "", Changes(DestroysStream, Reg(FieldStream, 0))),
		graphs,
	),
}

var graphs = slices.Concat(
	hip("hipStreamBeginCapture", "graph", "|_spt", Changes(BeginsCapture, Reg(FieldStream, 0))),
	hip("hipStreamEndCapture", "graph", "|_spt", Changes(EndsCapture, Reg(FieldStream, 0), Out(FieldGraph, 1))),
	hip("hipGraphCreate", "graph", "", Captures(Out(FieldGraph, 0))),
	hip("hipGraphDestroy", "graph", "", Changes(DestroysGraph, Reg(FieldGraph, 0))),
	hip("hipGraphInstantiate", "graph", "", cuda.Instantiates),
	hip("hipGraphInstantiateWithFlags", "graph", "", cuda.Instantiates),
	hip("hipGraphInstantiateWithParams", "graph", "", cuda.Instantiates),
	hip("hipGraphExecUpdate", "graph", "", Changes(UpdatesGraph, Reg(FieldGraphExec, 0), Reg(FieldGraph, 1))),
	hip("hipGraphExecDestroy", "graph", "", Changes(DestroysGraphExec, Reg(FieldGraphExec, 0))),
	// hipGraphAddKernelNode(node *, graph, dependencies, n, const hipKernelNodeParams *):
	// {blockDim @0, extra @16, func @24, gridDim @32, kernelParams @48, sharedMemBytes @56}
	hip("hipGraphAddKernelNode", "graph", "", func(f *Function) {
		f.Effect, f.Name = AddsNode, FromKernel
		f.Values = []Value{
			Out(FieldHandle, 0), Reg(FieldGraph, 1), Mem(FieldHostStub, 4, 24),
			Mem32(FieldGridX, 4, 32), Mem32(FieldGridY, 4, 36), Mem32(FieldGridZ, 4, 40),
			Mem32(FieldBlockX, 4, 0), Mem32(FieldBlockY, 4, 4), Mem32(FieldBlockZ, 4, 8),
			Mem32(FieldSharedBytes, 4, 56),
		}
	}),
	hip("hipGraphClone", "graph", "", Changes(ClonesGraph, Out(FieldGraph, 0), Reg(FieldChild, 1))),
	hip("hipGraphDestroyNode", "graph", "", Changes(RemovesNode, Reg(FieldHandle, 0))),
	// hipGraphAdd…Node(node *, graph, dependencies, n, …), as CUDA's
	node("hipGraphAddMemcpyNode", cuda.Behind(4, copy3D)...),
	// (…, dst, | src, bytes, kind)
	node("hipGraphAddMemcpyNode1D", Arg(FieldBytes, 6), Arg32(FieldCopyKind, 7)),
	// (…, const hipMemsetParams *): {dst, elementSize @8, height @16, pitch, value, width @40}
	node("hipGraphAddMemsetNode", Mem(FieldWidth, 4, 40), Mem(FieldHeight, 4, 16), Mem32(FieldDepth, 4, 8)),
	node("hipGraphAddHostNode"),
	node("hipGraphAddEmptyNode"),
	node("hipGraphAddChildGraphNode", Reg(FieldChild, 4)),
	node("hipGraphAddEventRecordNode", Reg(FieldEvent, 4)),
	node("hipGraphAddEventWaitNode", Reg(FieldEvent, 4)),
	hip("hipGraphAddMemAllocNode", "graph", "", cuda.MakesNode(cuda.AllocNodeValues...), cuda.ChangesMemoryAtReplay("alloc")),
	hip("hipGraphAddMemFreeNode", "graph", "", cuda.MakesNode(Reg(FieldAddress, 4)), cuda.ChangesMemoryAtReplay("free")),
	// (…, hipGraphNodeParams *): {type, reserved, and at 16 what the calls above
	// have, such as hipKernelNodeParams or a child graph}
	hip("hipGraphAddNode", "graph", "", func(f *Function) {
		f.Effect, f.Name, f.Node = AddsNode, FromKernel, nodeLayout
		f.Values = []Value{
			Out(FieldHandle, 0), Reg(FieldGraph, 1), Mem32(FieldNodeKind, 4, 0),
			Mem(FieldNode16, 4, 16), Mem(FieldNode24, 4, 24), Mem(FieldNode32, 4, 32), Mem(FieldNode40, 4, 40),
			Mem(FieldNode48, 4, 48), Mem(FieldNode56, 4, 56), Mem(FieldBytes, 4, 120), OutAt(FieldAddress, 4, 128),
		}
	}),
)

// nodeLayout is that of hipGraphNodeParams (the hip_runtime_api.h that Triton 3.9
// comes with, offsetof): a kernel's {blockDim @16, func @40, gridDim @48}, a
// memset's {elementSize @24, height @32, width @56}.
var nodeLayout = &NodeLayout{
	Kernel: FieldNode40, As: FieldHostStub,
	Grid:    [3]Half{Low(FieldNode48), High(FieldNode48), Low(FieldNode56)},
	Block:   [3]Half{Low(FieldNode16), High(FieldNode16), Low(FieldNode24)},
	Element: Low(FieldNode24), Width: FieldNode56, Height: FieldNode32,
}

func node(name string, more ...Value) []Function {
	return hip(name, "graph", "", cuda.MakesNode(more...))
}
