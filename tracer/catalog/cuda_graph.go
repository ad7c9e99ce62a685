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
	// (…, CUDA_MEM_ALLOC_NODE_PARAMS *): {CUmemPoolProps of 88 bytes, accessDescs,
	// count, bytesize @104, dptr @112, which the call fills in}
	cudaNode("cuGraphAddMemAllocNode", "", Mem(FieldBytes, 4, 104), OutAt(FieldAddress, 4, 112)),
	// (…, address)
	cudaNode("cuGraphAddMemFreeNode", "", Reg(FieldAddress, 4)),
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

// cudaAnyNode is cuGraphAddNode, with its parameters behind argument n: those
// of a kernel, whose function has the place of a child graph.
func cudaAnyNode(variant string, n uint8) []Function {
	return cuda("cuGraphAddNode", "graph", variant, func(f *Function) {
		f.Effect, f.Name = AddsNode, FromKernel
		f.Values = []Value{
			Out(FieldHandle, 0), Reg(FieldGraph, 1), Mem32(FieldNodeKind, n, 0), Mem(FieldKernel, n, 16), Mem(FieldChild, n, 16),
			Mem32(FieldGridX, n, 24), Mem32(FieldGridY, n, 28), Mem32(FieldGridZ, n, 32),
			Mem32(FieldBlockX, n, 36), Mem32(FieldBlockY, n, 40), Mem32(FieldBlockZ, n, 44),
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
