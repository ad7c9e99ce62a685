package cuda

import (
	"slices"

	. "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// Graphs: what a replay runs was captured from streams, or added as nodes.
var graphs = slices.Concat(
	nodes,
	cuda("cuGraphCreate", "graph", "", Captures(Out(FieldGraph, 0))),
	cuda("cuGraphDestroy", "graph", "", Changes(DestroysGraph, Reg(FieldGraph, 0))),
	// cuGraphClone(clone *, original), cuGraphDestroyNode(node)
	cuda("cuGraphClone", "graph", "", Changes(ClonesGraph, Out(FieldGraph, 0), Reg(FieldChild, 1))),
	cuda("cuGraphDestroyNode", "graph", "", Changes(RemovesNode, Reg(FieldHandle, 0))),
	// cuGraphConditionalHandleCreate(handle *, graph, context, default, flags)
	cuda("cuGraphConditionalHandleCreate", "graph", "", Captures(Out(FieldHandle, 0), Reg(FieldGraph, 1))),
	// cuGraphInstantiate…(exec *, graph, …)
	cuda("cuGraphInstantiate", "graph", "|_v2", Instantiates),
	cuda("cuGraphInstantiateWithFlags", "graph", "", Instantiates),
	cuda("cuGraphInstantiateWithParams", "graph", "|_ptsz", Instantiates),
	cuda("cuGraphExecUpdate", "graph", "|_v2", Changes(UpdatesGraph, Reg(FieldGraphExec, 0), Reg(FieldGraph, 1))),
	cuda("cuGraphExecDestroy", "graph", "", Changes(DestroysGraphExec, Reg(FieldGraphExec, 0))),
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

// Instantiates is the layout of cuGraphInstantiate.
func Instantiates(f *Function) {
	f.Effect, f.Values = InstantiatesGraph, []Value{Out(FieldGraphExec, 0), Reg(FieldGraph, 1)}
}

// cuGraphAdd…Node(node *, graph, dependencies, n, …): the fifth argument says
// what the node does.
var nodes = slices.Concat(
	// (…, const CUDA_MEMCPY3D *, context)
	node("cuGraphAddMemcpyNode", "", Behind(4, copy3D["_v2"])...),
	// (…, const CUDA_MEMSET_NODE_PARAMS *, context): {dst, pitch, value @16,
	// elementSize @20, width @24, height @32}, the width in elements
	node("cuGraphAddMemsetNode", "", Mem(FieldWidth, 4, 24), Mem(FieldHeight, 4, 32), Mem32(FieldDepth, 4, 20)),
	node("cuGraphAddHostNode", ""),
	node("cuGraphAddEmptyNode", ""),
	// (…, child graph): what it has at this moment
	node("cuGraphAddChildGraphNode", "", Reg(FieldChild, 4)),
	// (…, event)
	node("cuGraphAddEventRecordNode", "", Reg(FieldEvent, 4)),
	node("cuGraphAddEventWaitNode", "", Reg(FieldEvent, 4)),
	node("cuGraphAddExternalSemaphoresSignalNode", ""),
	node("cuGraphAddExternalSemaphoresWaitNode", ""),
	node("cuGraphAddBatchMemOpNode", ""),
	allocNode("cuGraphAddMemAllocNode"),
	freeNode("cuGraphAddMemFreeNode"),
	// (…, CUgraphNodeParams *): {type, reserved, and at 16 what the calls above
	// have}; _v2 has the data of edges before n.
	anyNode("", 4),
	anyNode("_v2", 5),
)

func node(name, variants string, more ...Value) []Function {
	return cuda(name, "graph", variants, MakesNode(more...))
}

// MakesNode is a call (node *, graph, …).
func MakesNode(more ...Value) func(*Function) {
	return Changes(AddsNode, append([]Value{Out(FieldHandle, 0), Reg(FieldGraph, 1)}, more...)...)
}

// (…, CUDA_MEM_ALLOC_NODE_PARAMS *): {CUmemPoolProps of 88 bytes with the location
// {type, id} @8, accessDescs, count, bytesize @104, dptr @112, which the call
// fills in}. Nothing is allocated before the graph runs.
func allocNode(name string) []Function {
	return cuda(name, "graph", "", MakesNode(AllocNodeValues...), ChangesMemoryAtReplay("alloc"))
}

// (…, address)
func freeNode(name string) []Function {
	return cuda(name, "graph", "", MakesNode(Reg(FieldAddress, 4)), ChangesMemoryAtReplay("free"))
}

// AllocNodeValues are those of a node that allocates.
var AllocNodeValues = []Value{Mem(FieldLocation, 4, 8), Mem(FieldBytes, 4, 104), OutAt(FieldAddress, 4, 112)}

// ChangesMemoryAtReplay is a node that changes memory each time its graph runs.
func ChangesMemoryAtReplay(action string) func(*Function) {
	return func(f *Function) { f.Memory = &Memory{Space: "device", Level: "driver", Action: action} }
}

// nodeLayout is that of CUgraphNodeParams (cuda.h 13.0, offsetof): a kernel's
// {func @16, gridDim @24, blockDim @36}, a memset's {elementSize @36, width @40,
// height @48}.
var nodeLayout = &NodeLayout{
	Kernel: FieldNode16, As: FieldKernel,
	Grid:    [3]Half{Low(FieldNode24), High(FieldNode24), Low(FieldNode32)},
	Block:   [3]Half{High(FieldNode32), Low(FieldNode40), High(FieldNode40)},
	Element: High(FieldNode32), Width: FieldNode40, Height: FieldNode48,
}

// anyNode is cuGraphAddNode, with its parameters behind argument n. Of a
// conditional node they are {handle @16, type @24, size @28, CUgraph *bodies @32,
// which the call fills in}: the first two are kept, all that an "if" or a "while"
// has. Of an allocation they are as above, from 16 on.
func anyNode(variant string, n uint8) []Function {
	return cuda("cuGraphAddNode", "graph", variant, func(f *Function) {
		f.Effect, f.Name, f.Node = AddsNode, FromKernel, nodeLayout
		f.Values = []Value{
			Out(FieldHandle, 0), Reg(FieldGraph, 1), Mem32(FieldNodeKind, n, 0),
			Mem(FieldNode16, n, 16), Mem(FieldNode24, n, 24), Mem(FieldNode32, n, 32), Mem(FieldNode40, n, 40), Mem(FieldNode48, n, 48),
			Mem(FieldBytes, n, 120), OutAt(FieldAddress, n, 128), OutAt2(FieldBody, n, 32, 0), OutAt2(FieldBody, n, 32, 8),
		}
	})
}

// Behind are values of a struct that another call has behind argument 0.
func Behind(n uint8, values []Value) []Value {
	moved := slices.Clone(values)
	for i := range moved {
		moved[i].Index = n
	}
	return moved
}
