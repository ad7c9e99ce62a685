package catalog

var hipCodeGroup = Group{
	Name: "hip-code",
	Help: "HIP (AMD): what gives launches their names, devices and graphs: modules, devices, streams, captures",
	Tier: Anchor,
	Functions: concat(
		hip("hipInit", "context", "", values(Reg32(FieldFlags, 0))),
		hip("hipModuleLoad", "module", "", effect(LoadsModule, Out(FieldModule, 0))),
		hip("hipModuleLoadData", "module", "", effect(LoadsModule, Out(FieldModule, 0))),
		hip("hipModuleLoadDataEx", "module", "", effect(LoadsModule, Out(FieldModule, 0))),
		hip("hipModuleUnload", "module", "", effect(UnloadsModule, Reg(FieldModule, 0))),
		hip("hipModuleGetFunction", "module", "", names(2, Out(FieldHandle, 0), Reg(FieldModule, 1))),
		// __hipRegisterFunction(modules, hostFunction, deviceFunction, deviceName, …)
		hip("__hipRegisterFunction", "module", "", func(f *Function) {
			names(3, Reg(FieldHostStub, 1))(f)
			f.StatusOK = false // it returns nothing
		}),
		hip("hipSetDevice", "context", "", effect(SetsDevice, Int32(FieldDeviceID, 0))),
		hip("hipCtxCreate", "context", "", effect(CreatesContext, Out(FieldContext, 0), Int32(FieldDeviceID, 2))),
		hip("hipCtxDestroy", "context", "", effect(DestroysContext, Reg(FieldContext, 0))),
		hip("hipCtxSetCurrent", "context", "", effect(SetsContext, Reg(FieldContext, 0))),
		hip("hipCtxPushCurrent", "context", "", effect(PushesContext, Reg(FieldContext, 0))),
		hip("hipCtxPopCurrent", "context", "", effect(PopsContext, Out(FieldContext, 0))),
		hip("hipDevicePrimaryCtxRetain", "context", "", effect(NamesContext, Out(FieldContext, 0), Int32(FieldDeviceID, 1))),
		hip("hipStreamCreate", "stream", "", effect(CreatesStream, Out(FieldStream, 0))),
		hip("hipStreamCreateWithFlags", "stream", "", effect(CreatesStream, Out(FieldStream, 0))),
		hip("hipStreamCreateWithPriority", "stream", "", effect(CreatesStream, Out(FieldStream, 0))),
		hip("hipExtStreamCreateWithCUMask", "stream", "", effect(CreatesStream, Out(FieldStream, 0))),
		hip("hipStreamDestroy", "stream", "", effect(DestroysStream, Reg(FieldStream, 0))),
		hipGraphs,
	),
}

var hipGraphs = concat(
	hip("hipStreamBeginCapture", "graph", "|_spt", effect(BeginsCapture, Reg(FieldStream, 0))),
	hip("hipStreamEndCapture", "graph", "|_spt", effect(EndsCapture, Reg(FieldStream, 0), Out(FieldGraph, 1))),
	hip("hipGraphCreate", "graph", "", values(Out(FieldGraph, 0))),
	hip("hipGraphDestroy", "graph", "", effect(DestroysGraph, Reg(FieldGraph, 0))),
	hip("hipGraphInstantiate", "graph", "", cudaInstantiates),
	hip("hipGraphInstantiateWithFlags", "graph", "", cudaInstantiates),
	hip("hipGraphInstantiateWithParams", "graph", "", cudaInstantiates),
	hip("hipGraphExecUpdate", "graph", "", effect(UpdatesGraph, Reg(FieldGraphExec, 0), Reg(FieldGraph, 1))),
	hip("hipGraphExecDestroy", "graph", "", effect(DestroysGraphExec, Reg(FieldGraphExec, 0))),
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
	hip("hipGraphClone", "graph", "", effect(ClonesGraph, Out(FieldGraph, 0), Reg(FieldChild, 1))),
	hip("hipGraphDestroyNode", "graph", "", effect(RemovesNode, Reg(FieldHandle, 0))),
	// hipGraphAdd…Node(node *, graph, dependencies, n, …), as CUDA's
	hipNode("hipGraphAddMemcpyNode", behind(4, hipCopy3D)...),
	// (…, dst, | src, bytes, kind)
	hipNode("hipGraphAddMemcpyNode1D", Arg(FieldBytes, 6), Arg32(FieldCopyKind, 7)),
	// (…, const hipMemsetParams *): {dst, elementSize @8, height @16, pitch, value, width @40}
	hipNode("hipGraphAddMemsetNode", Mem(FieldWidth, 4, 40), Mem(FieldHeight, 4, 16), Mem32(FieldDepth, 4, 8)),
	hipNode("hipGraphAddHostNode"),
	hipNode("hipGraphAddEmptyNode"),
	hipNode("hipGraphAddChildGraphNode", Reg(FieldChild, 4)),
	hipNode("hipGraphAddEventRecordNode", Reg(FieldEvent, 4)),
	hipNode("hipGraphAddEventWaitNode", Reg(FieldEvent, 4)),
	hip("hipGraphAddMemAllocNode", "graph", "", addsNode(allocNodeValues...), changesMemoryAtReplay("alloc")),
	hip("hipGraphAddMemFreeNode", "graph", "", addsNode(Reg(FieldAddress, 4)), changesMemoryAtReplay("free")),
	// (…, hipGraphNodeParams *): {type, reserved, and at 16 what the calls above
	// have, such as hipKernelNodeParams or a child graph}
	hip("hipGraphAddNode", "graph", "", func(f *Function) {
		f.Effect, f.Name, f.Node = AddsNode, FromKernel, hipNodeLayout
		f.Values = []Value{
			Out(FieldHandle, 0), Reg(FieldGraph, 1), Mem32(FieldNodeKind, 4, 0),
			Mem(FieldNode16, 4, 16), Mem(FieldNode24, 4, 24), Mem(FieldNode32, 4, 32), Mem(FieldNode40, 4, 40),
			Mem(FieldNode48, 4, 48), Mem(FieldNode56, 4, 56), Mem(FieldBytes, 4, 120), OutAt(FieldAddress, 4, 128),
		}
	}),
)

// hipNodeLayout is that of hipGraphNodeParams (the hip_runtime_api.h that Triton 3.9
// comes with, offsetof): a kernel's {blockDim @16, func @40, gridDim @48}, a
// memset's {elementSize @24, height @32, width @56}.
var hipNodeLayout = &NodeLayout{
	Kernel: FieldNode40, As: FieldHostStub,
	Grid:    [3]Half{{FieldNode48, false}, {FieldNode48, true}, {FieldNode56, false}},
	Block:   [3]Half{{FieldNode16, false}, {FieldNode16, true}, {FieldNode24, false}},
	Element: Half{FieldNode24, false}, Width: FieldNode56, Height: FieldNode32,
}

func hipNode(name string, more ...Value) []Function {
	return hip(name, "graph", "", addsNode(more...))
}
