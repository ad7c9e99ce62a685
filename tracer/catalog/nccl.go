package catalog

// NCCL and RCCL: the same names and argument lists (nccl.h 2.30, rccl.h 2.22).
// They are C functions of libraries that report errors by their result and hold
// exceptions inside. A call between ncclGroupStart and ncclGroupEnd is only
// noted; the outermost ncclGroupEnd launches, so a host duration is no
// communication time.
//
// Bytes are those of one rank: count × size of the element, where count is what
// the rank sends (ncclAllGather, ncclGather; ncclAlltoAll: to each peer) or gets
// (ncclReduceScatter, ncclScatter). internal/collective makes bus bandwidth of it.

// Wheels of PyTorch have had NCCL inside libtorch_cuda.so, and programs are linked
// with libnccl_static.a: the functions are looked for wherever they are. A call
// passes one copy of them.

const libnccl = "libnccl.so librccl.so"

// ncclInProgress is what a call on a communicator that was made not to block
// returns while it goes on.
const ncclInProgress = 7

// ncclDtypes are ncclDataType_t; the two of eight bits are since 2.24.
var ncclDtypes = []Dtype{
	{"int8", 1}, {"uint8", 1}, {"int32", 4}, {"uint32", 4}, {"int64", 8}, {"uint64", 8},
	{"float16", 2}, {"float32", 4}, {"float64", 8}, {"bfloat16", 2}, {"float8_e4m3", 1}, {"float8_e5m2", 1},
}

var ncclGroup = Group{
	Name:      "nccl",
	Help:      "NCCL and RCCL: collectives, sends, receives, groups, communicators",
	Tier:      Anchor,
	Functions: concat(ncclCollectives, ncclCommunicators),
}

// All below have (send, recv, count, dtype, …) or (buffer, count, dtype, …).
var ncclCollectives = concat(
	// (send, recv, count, dtype, op, comm, | stream)
	nccl("ncclAllReduce", ncclWork(2, 3, Reg32(FieldOp, 4), Reg(FieldCommunicator, 5), Arg(FieldStream, 6))),
	nccl("ncclReduceScatter", ncclWork(2, 3, Reg32(FieldOp, 4), Reg(FieldCommunicator, 5), Arg(FieldStream, 6))),
	// (send, recv, count, dtype, op, root, | comm, stream)
	nccl("ncclReduce", ncclWork(2, 3, Reg32(FieldOp, 4), Int32(FieldRoot, 5), Arg(FieldCommunicator, 6), Arg(FieldStream, 7))),
	// (send, recv, count, dtype, root, comm, | stream)
	nccl("ncclBroadcast", ncclWork(2, 3, Int32(FieldRoot, 4), Reg(FieldCommunicator, 5), Arg(FieldStream, 6))),
	nccl("ncclGather", ncclWork(2, 3, Int32(FieldRoot, 4), Reg(FieldCommunicator, 5), Arg(FieldStream, 6))),
	nccl("ncclScatter", ncclWork(2, 3, Int32(FieldRoot, 4), Reg(FieldCommunicator, 5), Arg(FieldStream, 6))),
	// (buffer, count, dtype, root, comm, stream)
	nccl("ncclBcast", ncclWork(1, 2, Int32(FieldRoot, 3), Reg(FieldCommunicator, 4), Reg(FieldStream, 5))),
	// (send, recv, count, dtype, comm, stream)
	nccl("ncclAllGather", ncclWork(2, 3, Reg(FieldCommunicator, 4), Reg(FieldStream, 5))),
	nccl("ncclAlltoAll", ncclWork(2, 3, Reg(FieldCommunicator, 4), Reg(FieldStream, 5))),
	nccl("ncclAllToAll", ncclWork(2, 3, Reg(FieldCommunicator, 4), Reg(FieldStream, 5))), // RCCL's name
	// (buffer, count, dtype, peer, comm, stream)
	nccl("ncclSend", ncclWork(1, 2, Int32(FieldPeer, 3), Reg(FieldCommunicator, 4), Reg(FieldStream, 5))),
	nccl("ncclRecv", ncclWork(1, 2, Int32(FieldPeer, 3), Reg(FieldCommunicator, 4), Reg(FieldStream, 5))),
	// RCCL: (send, sendcounts, sdispls, recv, recvcounts, rdispls, | dtype, comm, stream)
	nccl("ncclAllToAllv", values(Arg32(FieldDtype, 6), Arg(FieldCommunicator, 7), Arg(FieldStream, 8))),
	nccl("ncclGroupStart", control, effect(BeginsGroup)),
	nccl("ncclGroupEnd", control, effect(EndsGroup)),
	nccl("ncclGroupSimulateEnd", control, effect(EndsGroup)),
)

// ncclWork has count and dtype in these arguments.
func ncclWork(count, dtype uint8, more ...Value) func(*Function) {
	return values(append([]Value{Reg(FieldCount, count), Reg32(FieldDtype, dtype)}, more...)...)
}

// uniqueIDWords is how much of an ncclUniqueId's 128 bytes is hashed: its first
// five words hold the bootstrap's magic number and socket address, which is all
// that NCCL puts into them.
const uniqueIDWords = 5

// mostInitAll is of how many devices ncclCommInitAll's communicators are known:
// what a record has room for.
const mostInitAll = 10

var ncclCommunicators = concat(
	// ncclCommInitRank(comm *, nranks, ncclUniqueId, rank): the id goes by value,
	// on x86-64 on the stack, so that rank is the third register; on arm64 behind
	// a pointer in the third, and rank is the fourth.
	nccl("ncclCommInitRank", control, ncclInitRank),
	nccl("ncclCommInitRankConfig", control, ncclInitRank),
	// ncclCommInitRankScalable(comm *, nranks, rank, n, ids *, config *)
	nccl("ncclCommInitRankScalable", control, effect(JoinsCommunicator,
		append([]Value{Out(FieldCommunicator, 0), Reg(FieldHandleAddress, 0), Int32(FieldRanks, 1), Int32(FieldRank, 2)}, idBehind(4)...)...)),
	// ncclCommInitAll(comms *, ndev, devlist *): one for each device, all of them
	// of this process
	nccl("ncclCommInitAll", control, effect(JoinsAll, append([]Value{Int32(FieldRanks, 1)}, OutList(FieldCommunicator, 0, mostInitAll)...)...)),
	// What a job asks of a communicator says it of those older than the recording.
	nccl("ncclCommCount", control, effect(TellsCommunicator, Reg(FieldCommunicator, 0), Out32(FieldRanks, 1))),
	nccl("ncclCommUserRank", control, effect(TellsCommunicator, Reg(FieldCommunicator, 0), Out32(FieldRank, 1))),
	nccl("ncclCommCuDevice", control, values(Reg(FieldCommunicator, 0), Out32(FieldDeviceID, 1))),
	// ncclCommSplit(comm, color, key, newcomm *, config *)
	nccl("ncclCommSplit", control, effect(SplitsCommunicator,
		Reg(FieldCommunicator, 0), Int32(FieldColor, 1), Int32(FieldKey, 2), Out(FieldHandle, 3), Reg(FieldHandleAddress, 3))),
	// ncclCommShrink(comm, int *excluded, n, newcomm *, config *, flags), 2.27
	nccl("ncclCommShrink", control, effect(ShrinksCommunicator, append([]Value{
		Reg(FieldCommunicator, 0), Reg32(FieldLeftOut, 2), Out(FieldHandle, 3), Reg(FieldHandleAddress, 3)}, excluded(1)...)...)),
	// ncclCommGrow(comm, nranks, ncclUniqueId *, rank, newcomm *, config *), 2.29: a
	// rank that was there gives -1, and most of those no id
	nccl("ncclCommGrow", control, effect(JoinsCommunicator,
		append([]Value{Out(FieldCommunicator, 4), Reg(FieldHandleAddress, 4), Int32(FieldRanks, 1), Int32(FieldRank, 3)}, idBehind(2)...)...)),
	nccl("ncclCommDestroy", control, effect(LeavesCommunicator, Reg(FieldCommunicator, 0))),
	nccl("ncclCommAbort", control, effect(LeavesCommunicator, Reg(FieldCommunicator, 0))),
	nccl("ncclCommFinalize", control, values(Reg(FieldCommunicator, 0))),
	nccl("ncclCommGetAsyncError", control, values(Reg(FieldCommunicator, 0))),
)

func ncclInitRank(f *Function) {
	f.Effect = JoinsCommunicator
	f.Values = append([]Value{Out(FieldCommunicator, 0), Reg(FieldHandleAddress, 0), Int32(FieldRanks, 1), Int32(FieldRank, rankArgument)}, uniqueID...)
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
	functions := runtimeCalls(Function{
		Library: libnccl, Anywhere: "ncclAllReduce", Label: name, Category: "collective", Runtime: "nccl", Dtypes: ncclDtypes,
		NotReady: ncclInProgress,
	}, "", with)
	for i := range functions {
		functions[i].Layer = "collective"
	}
	return functions
}
