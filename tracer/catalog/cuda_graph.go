package catalog

import "slices"

// Graphs: what a replay runs was captured from streams, or added as nodes.
var cudaGraphs = concat(
	cudaNodes,
	cuda("cuGraphCreate", "graph", "", values(Out(FieldGraph, 0))),
	cuda("cuGraphDestroy", "graph", "", effect(DestroysGraph, Reg(FieldGraph, 0))),
	// cuGraphClone(clone *, original), cuGraphDestroyNode(node)
	cuda("cuGraphClone", "graph", "", effect(ClonesGraph, Out(FieldGraph, 0), Reg(FieldChild, 1))),
	cuda("cuGraphDestroyNode", "graph", "", effect(RemovesNode, Reg(FieldHandle, 0))),
	// cuGraphConditionalHandleCreate(handle *, graph, context, default, flags)
	cuda("cuGraphConditionalHandleCreate", "graph", "", values(Out(FieldHandle, 0), Reg(FieldGraph, 1))),
	// cuGraphInstantiate…(exec *, graph, …)
	cuda("cuGraphInstantiate", "graph", "|_v2", cudaInstantiates),
	cuda("cuGraphInstantiateWithFlags", "graph", "", cudaInstantiates),
	cuda("cuGraphInstantiateWithParams", "graph", "|_ptsz", cudaInstantiates),
	cuda("cuGraphExecUpdate", "graph", "|_v2", effect(UpdatesGraph, Reg(FieldGraphExec, 0), Reg(FieldGraph, 1))),
	cuda("cuGraphExecDestroy", "graph", "", effect(DestroysGraphExec, Reg(FieldGraphExec, 0))),
	// cuGraphAddKernelNode(node *, graph, dependencies, n, const CUDA_KERNEL_NODE_PARAMS *)
	cuda("cuGraphAddKernelNode", "graph", "|_v2", func(f *Function) {
		f.Effect, f.Name = AddsNode, FromKernel
		f.Values = []Value{
			Out(FieldHandle, 0), Reg(FieldGraph, 1), Mem(FieldKernel, 4, 0),
			Mem32(FieldGridX, 4, 8), Mem32(FieldGridY, 4, 12), Mem32(FieldGridZ, 4, 16),
			Mem32(FieldBlockX, 4, 20), Mem32(FieldBlockY, 4, 24), Mem32(FieldBlockZ, 4, 28),
			Mem32(FieldSharedBytes, 4, 32),
		}
	}),
)

func cudaInstantiates(f *Function) {
	f.Effect, f.Values = InstantiatesGraph, []Value{Out(FieldGraphExec, 0), Reg(FieldGraph, 1)}
}

// cuGraphAdd…Node(node *, graph, dependencies, n, …): the fifth argument says
// what the node does.
var cudaNodes = concat(
	// (…, const CUDA_MEMCPY3D *, context)
	cudaNode("cuGraphAddMemcpyNode", "", behind(4, cudaCopy3D["_v2"])...),
	// (…, const CUDA_MEMSET_NODE_PARAMS *, context): {dst, pitch, value @16,
	// elementSize @20, width @24, height @32}, the width in elements
	cudaNode("cuGraphAddMemsetNode", "", Mem(FieldWidth, 4, 24), Mem(FieldHeight, 4, 32), Mem32(FieldDepth, 4, 20)),
	cudaNode("cuGraphAddHostNode", ""),
	cudaNode("cuGraphAddEmptyNode", ""),
	// (…, child graph): what it has at this moment
	cudaNode("cuGraphAddChildGraphNode", "", Reg(FieldChild, 4)),
	// (…, event)
	cudaNode("cuGraphAddEventRecordNode", "", Reg(FieldEvent, 4)),
	cudaNode("cuGraphAddEventWaitNode", "", Reg(FieldEvent, 4)),
	cudaNode("cuGraphAddExternalSemaphoresSignalNode", ""),
	cudaNode("cuGraphAddExternalSemaphoresWaitNode", ""),
	cudaNode("cuGraphAddBatchMemOpNode", ""),
	cudaAllocNode("cuGraphAddMemAllocNode"),
	cudaFreeNode("cuGraphAddMemFreeNode"),
	// (…, CUgraphNodeParams *): {type, reserved, and at 16 what the calls above
	// have}; _v2 has the data of edges before n.
	cudaAnyNode("", 4),
	cudaAnyNode("_v2", 5),
)

func cudaNode(name, variants string, more ...Value) []Function {
	return cuda(name, "graph", variants, addsNode(more...))
}

// addsNode is a call (node *, graph, …).
func addsNode(more ...Value) func(*Function) {
	return effect(AddsNode, append([]Value{Out(FieldHandle, 0), Reg(FieldGraph, 1)}, more...)...)
}

// (…, CUDA_MEM_ALLOC_NODE_PARAMS *): {CUmemPoolProps of 88 bytes with the location
// {type, id} @8, accessDescs, count, bytesize @104, dptr @112, which the call
// fills in}. Nothing is allocated before the graph runs.
func cudaAllocNode(name string) []Function {
	return cuda(name, "graph", "", addsNode(allocNodeValues...), changesMemoryAtReplay("alloc"))
}

// (…, address)
func cudaFreeNode(name string) []Function {
	return cuda(name, "graph", "", addsNode(Reg(FieldAddress, 4)), changesMemoryAtReplay("free"))
}

var allocNodeValues = []Value{Mem(FieldLocation, 4, 8), Mem(FieldBytes, 4, 104), OutAt(FieldAddress, 4, 112)}

// changesMemoryAtReplay is a node that changes memory each time its graph runs.
func changesMemoryAtReplay(action string) func(*Function) {
	return func(f *Function) { f.Memory = &Memory{Space: "device", Level: "driver", Action: action} }
}

// cudaNodeLayout is that of CUgraphNodeParams (cuda.h 13.0, offsetof): a kernel's
// {func @16, gridDim @24, blockDim @36}, a memset's {elementSize @36, width @40,
// height @48}.
var cudaNodeLayout = &NodeLayout{
	Kernel: FieldNode16, As: FieldKernel,
	Grid:    [3]Half{{FieldNode24, false}, {FieldNode24, true}, {FieldNode32, false}},
	Block:   [3]Half{{FieldNode32, true}, {FieldNode40, false}, {FieldNode40, true}},
	Element: Half{FieldNode32, true}, Width: FieldNode40, Height: FieldNode48,
}

// cudaAnyNode is cuGraphAddNode, with its parameters behind argument n. Of a
// conditional node they are {handle @16, type @24, size @28, CUgraph *bodies @32,
// which the call fills in}: the first two are kept, all that an "if" or a "while"
// has. Of an allocation they are as above, from 16 on.
func cudaAnyNode(variant string, n uint8) []Function {
	return cuda("cuGraphAddNode", "graph", variant, func(f *Function) {
		f.Effect, f.Name, f.Node = AddsNode, FromKernel, cudaNodeLayout
		f.Values = []Value{
			Out(FieldHandle, 0), Reg(FieldGraph, 1), Mem32(FieldNodeKind, n, 0),
			Mem(FieldNode16, n, 16), Mem(FieldNode24, n, 24), Mem(FieldNode32, n, 32), Mem(FieldNode40, n, 40), Mem(FieldNode48, n, 48),
			Mem(FieldBytes, n, 120), OutAt(FieldAddress, n, 128), OutAt2(FieldBody, n, 32, 0), OutAt2(FieldBody, n, 32, 8),
		}
	})
}

// behind are values of a struct that another call has behind argument 0.
func behind(n uint8, values []Value) []Value {
	moved := slices.Clone(values)
	for i := range moved {
		moved[i].Index = n
	}
	return moved
}
