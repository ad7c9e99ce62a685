// Package nccl has the table of NCCL and RCCL: the same names and argument lists (nccl.h 2.30,
// rccl.h 2.22). They are C functions of libraries that report errors by their result and hold
// exceptions inside. A call between ncclGroupStart and ncclGroupEnd is only noted; the outermost
// ncclGroupEnd launches, so a host duration is no communication time.
//
// Bytes are those of one rank: count × size of the element, where count is what the rank sends
// (ncclAllGather, ncclGather; ncclAlltoAll: to each peer) or gets (ncclReduceScatter,
// ncclScatter). Reports derive the bus bandwidth from them.
//
// The package is no part of the public API: it may change with any version.
package nccl

import (
	"slices"

	. "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// Groups lists the groups of this table, in the order in which they are shown.
func Groups() []Group {
	return []Group{group}
}

// Wheels of PyTorch have had NCCL inside libtorch_cuda.so, and programs are linked
// with libnccl_static.a: the functions are looked for wherever they are. A call
// passes one copy of them.

const libnccl = "libnccl.so librccl.so"

// inProgress is what a call on a communicator that was made not to block
// returns while it goes on.
const inProgress = 7

// dtypes are ncclDataType_t; the two of eight bits are since 2.24.
var dtypes = []Dtype{
	Element("int8", 1), Element("uint8", 1), Element("int32", 4), Element("uint32", 4), Element("int64", 8), Element("uint64", 8),
	Element("float16", 2), Element("float32", 4), Element("float64", 8), Element("bfloat16", 2), Element("float8_e4m3", 1),
	Element("float8_e5m2", 1),
}

var group = Group{
	Name:      "nccl",
	Anchor:    true,
	Help:      "NCCL and RCCL: collectives, sends, receives, groups, communicators",
	Tier:      Anchor,
	Functions: slices.Concat(collectives, communicators),
}

// All below have (send, recv, count, dtype, …) or (buffer, count, dtype, …).
var collectives = slices.Concat(
	// (send, recv, count, dtype, op, comm, | stream)
	nccl("ncclAllReduce", work(2, 3, Reg32(FieldOp, 4), Reg(FieldCommunicator, 5), Arg(FieldStream, 6))),
	nccl("ncclReduceScatter", work(2, 3, Reg32(FieldOp, 4), Reg(FieldCommunicator, 5), Arg(FieldStream, 6))),
	// (send, recv, count, dtype, op, root, | comm, stream)
	nccl("ncclReduce", work(2, 3, Reg32(FieldOp, 4), Int32(FieldRoot, 5), Arg(FieldCommunicator, 6), Arg(FieldStream, 7))),
	// (send, recv, count, dtype, root, comm, | stream)
	nccl("ncclBroadcast", work(2, 3, Int32(FieldRoot, 4), Reg(FieldCommunicator, 5), Arg(FieldStream, 6))),
	nccl("ncclGather", work(2, 3, Int32(FieldRoot, 4), Reg(FieldCommunicator, 5), Arg(FieldStream, 6))),
	nccl("ncclScatter", work(2, 3, Int32(FieldRoot, 4), Reg(FieldCommunicator, 5), Arg(FieldStream, 6))),
	// (buffer, count, dtype, root, comm, stream)
	nccl("ncclBcast", work(1, 2, Int32(FieldRoot, 3), Reg(FieldCommunicator, 4), Reg(FieldStream, 5))),
	// (send, recv, count, dtype, comm, stream)
	nccl("ncclAllGather", work(2, 3, Reg(FieldCommunicator, 4), Reg(FieldStream, 5))),
	nccl("ncclAlltoAll", work(2, 3, Reg(FieldCommunicator, 4), Reg(FieldStream, 5))),
	nccl("ncclAllToAll", work(2, 3, Reg(FieldCommunicator, 4), Reg(FieldStream, 5))), // RCCL's name
	// (buffer, count, dtype, peer, comm, stream)
	nccl("ncclSend", work(1, 2, Int32(FieldPeer, 3), Reg(FieldCommunicator, 4), Reg(FieldStream, 5))),
	nccl("ncclRecv", work(1, 2, Int32(FieldPeer, 3), Reg(FieldCommunicator, 4), Reg(FieldStream, 5))),
	// RCCL: (send, sendcounts, sdispls, recv, recvcounts, rdispls, | dtype, comm, stream)
	nccl("ncclAllToAllv", Captures(Arg32(FieldDtype, 6), Arg(FieldCommunicator, 7), Arg(FieldStream, 8))),
	nccl("ncclGroupStart", control, Changes(BeginsGroup)),
	nccl("ncclGroupEnd", control, Changes(EndsGroup)),
	nccl("ncclGroupSimulateEnd", control, Changes(EndsGroup)),
)

// work has count and dtype in these arguments.
func work(count, dtype uint8, more ...Value) func(*Function) {
	return Captures(append([]Value{Reg(FieldCount, count), Reg32(FieldDtype, dtype)}, more...)...)
}

// uniqueIDWords is how much of an ncclUniqueId's 128 bytes is hashed: its first
// five words hold the bootstrap's magic number and socket address, which is all
// that NCCL puts into them.
const uniqueIDWords = 5

// mostInitAll is of how many devices ncclCommInitAll's communicators are known:
// what a record has room for.
const mostInitAll = 10

var communicators = slices.Concat(
	// ncclCommInitRank(comm *, nranks, ncclUniqueId, rank): the id goes by value,
	// on x86-64 on the stack, so that rank is the third register; on arm64 behind
	// a pointer in the third, and rank is the fourth.
	nccl("ncclCommInitRank", control, initRank),
	nccl("ncclCommInitRankConfig", control, initRank),
	// ncclCommInitRankScalable(comm *, nranks, rank, n, ids *, config *)
	nccl("ncclCommInitRankScalable", control, Changes(JoinsCommunicator,
		append([]Value{Out(FieldCommunicator, 0), Reg(FieldHandleAddress, 0), Int32(FieldRanks, 1), Int32(FieldRank, 2)}, idBehind(4)...)...)),
	// ncclCommInitAll(comms *, ndev, devlist *): one for each device, all of them
	// of this process
	nccl("ncclCommInitAll", control, Changes(JoinsAll, append([]Value{Int32(FieldRanks, 1)}, OutList(FieldCommunicator, 0,
		mostInitAll)...)...)),
	// What a job asks of a communicator says it of those older than the recording.
	nccl("ncclCommCount", control, Changes(TellsCommunicator, Reg(FieldCommunicator, 0), Out32(FieldRanks, 1))),
	nccl("ncclCommUserRank", control, Changes(TellsCommunicator, Reg(FieldCommunicator, 0), Out32(FieldRank, 1))),
	nccl("ncclCommCuDevice", control, Captures(Reg(FieldCommunicator, 0), Out32(FieldDeviceID, 1))),
	// ncclCommSplit(comm, color, key, newcomm *, config *)
	nccl("ncclCommSplit", control, Changes(SplitsCommunicator,
		Reg(FieldCommunicator, 0), Int32(FieldColor, 1), Int32(FieldKey, 2), Out(FieldHandle, 3), Reg(FieldHandleAddress, 3))),
	// ncclCommShrink(comm, int *excluded, n, newcomm *, config *, flags), 2.27
	nccl("ncclCommShrink", control, Changes(ShrinksCommunicator, append([]Value{
		Reg(FieldCommunicator, 0), Reg32(FieldLeftOut, 2), Out(FieldHandle, 3), Reg(FieldHandleAddress, 3)}, excluded(1)...)...)),
	// ncclCommGrow(comm, nranks, ncclUniqueId *, rank, newcomm *, config *), 2.29: a
	// rank that was there gives -1, and most of those no id
	nccl("ncclCommGrow", control, Changes(JoinsCommunicator,
		append([]Value{Out(FieldCommunicator, 4), Reg(FieldHandleAddress, 4), Int32(FieldRanks, 1), Int32(FieldRank, 3)}, idBehind(2)...)...)),
	nccl("ncclCommDestroy", control, Changes(LeavesCommunicator, Reg(FieldCommunicator, 0))),
	nccl("ncclCommAbort", control, Changes(LeavesCommunicator, Reg(FieldCommunicator, 0))),
	nccl("ncclCommFinalize", control, Captures(Reg(FieldCommunicator, 0))),
	nccl("ncclCommGetAsyncError", control, Captures(Reg(FieldCommunicator, 0))),
)

func initRank(f *Function) {
	f.Effect = JoinsCommunicator
	f.Values = append([]Value{Out(FieldCommunicator, 0), Reg(FieldHandleAddress, 0), Int32(FieldRanks, 1), Int32(FieldRank, rankArgument)},
		uniqueID...)
}

// mostExcluded is of how many ranks that a communicator loses at once the rest is
// still known.
const mostExcluded = 8

// excluded are the ranks listed behind argument n.
func excluded(n uint8) (ranks []Value) {
	for i := range mostExcluded {
		ranks = append(ranks, Mem32(FieldExcluded, n, int16(4*i)))
	}
	return ranks
}

// idBehind are the words of an id behind argument n.
func idBehind(n uint8) (id []Value) {
	for i := range uniqueIDWords {
		id = append(id, Mem(FieldUniqueID, n, int16(8*i)))
	}
	return id
}

// control is what moves no data.
func control(f *Function) { f.Category = "communicator" }

// nccl is one entry point of NCCL and RCCL.
func nccl(name string, with ...func(*Function)) []Function {
	functions := EntryPoints(Function{
		Library: libnccl, Anywhere: "ncclAllReduce", Label: name, Category: "collective", Runtime: "nccl", Dtypes: dtypes,
		NotReady: inProgress,
	}, "", with)
	for i := range functions {
		functions[i].Layer = "collective"
	}
	return functions
}
