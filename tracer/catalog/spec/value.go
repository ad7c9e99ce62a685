package spec

// Field says what a captured argument means.
type Field uint8

const (
	FieldNone           Field = iota
	FieldAddress              // of the memory allocated or freed
	FieldBytes                // size in bytes
	FieldSignedBytes          // size in bytes, negative for a free
	FieldTotalAllocated       // the allocator's bytes in use after the call
	FieldTotalReserved        // the allocator's bytes reserved after the call
	FieldTorchDevice          // c10::Device: int8 type, int8 index
	FieldNodeVTable           // vtable pointer of an autograd node: its class
	FieldSequence             // autograd sequence number
	FieldForwardThread        // PyTorch's number of the thread that took it
	FieldScopeKey             // what identifies a scope when it ends
	FieldContext              // runtime context handle
	FieldStream               // stream or queue handle
	FieldKernel               // kernel handle: its name is learnt when it is created
	FieldHandle               // the handle that the call creates
	FieldDimensions           // how many of the work sizes that follow count
	FieldWorkX                // work items in all
	FieldWorkY
	FieldWorkZ
	FieldBlockX // work items of a group, threads of a block
	FieldBlockY
	FieldBlockZ
	FieldGridX // blocks (work groups)
	FieldGridY
	FieldGridZ
	FieldSharedBytes // dynamic shared memory per block
	FieldDeviceID    // the device, as the process numbers them
	FieldPeerDevice  // the other device of a copy
	FieldCount       // number of elements
	FieldDtype       // element type: index of Function.Dtypes
	FieldPeer        // the other rank
	FieldRoot        // the root's rank
	FieldRank        // the caller's own rank
	FieldRanks       // how many ranks there are
	FieldColor       // of a communicator's split: negative is none
	// FieldCommunicator is a communicator's handle; FieldUniqueID a word of the
	// id that all its ranks share: the words of one call are hashed together.
	FieldCommunicator
	FieldUniqueID
	FieldModule     // module or library handle, of which kernels come
	FieldEvent      // event handle
	FieldStartEvent // the earlier of two events
	FieldElapsed    // float32 milliseconds between two events
	FieldGraph
	FieldGraphExec
	FieldWidth // FieldWidth, FieldHeight and FieldDepth multiply to bytes
	FieldHeight
	FieldDepth
	FieldSourceKind // kind of memory that a copy reads: MemoryKind
	FieldTargetKind // kind of memory that a copy writes
	FieldCopyKind   // direction of a copy: cudaMemcpyKind, hipMemcpyKind
	FieldHostStub   // host function that stands for a kernel
	FieldPool       // memory pool handle
	FieldFlags      // the function's own flags
	FieldAllocation // handle of physical memory without an address
	FieldReserved   // address range without memory
	FieldOffset     // bytes from the beginning of an allocation
	FieldOp         // reduction
	FieldTimeout    // nanoseconds that a wait may take
	FieldList       // command list or command buffer handle
	FieldQueue      // command queue that executes lists
	FieldSerial     // the library's own number of the call
	// FieldShapes is how many of the sizes that follow count: those of an array's
	// dimensions, which multiply to its elements.
	FieldShapes
	FieldShape0
	FieldShape1
	FieldShape2
	FieldShape3
	FieldShape4
	FieldShape5
	// FieldNamePointer and FieldNameBytes are a string that names FieldHandle.
	FieldNamePointer
	FieldNameBytes
	FieldDevices   // over how many devices the call runs
	FieldArguments // how many arguments an execution has
	FieldTarget    // address that a copy writes to; null where there is none
	FieldErrorCode // code of an error that an earlier call returned
	// FieldDeviceHandle is a device's handle, where a runtime has those instead
	// of numbers.
	FieldDeviceHandle
	FieldError     // the code of this call's error, where it comes behind a pointer
	FieldBlocking  // not 0: the call returns when its work is through
	FieldParameter // what a query asks for
	FieldAnswer    // the answer of the call
	FieldTime      // the device's time of something, ns
	FieldTicksFrom // the same in ticks of the device, from
	FieldTicksTo   // and to
	FieldTickNS    // ns of a tick
	FieldTickBits  // how many bits of a tick count before it begins anew
	FieldChild     // a graph that becomes part of another
	FieldNodeKind  // what a node of a graph does: NodeKernel, NodeGraph, …
	// The words of a node's parameters at these offsets: what they mean depends on
	// FieldNodeKind (NodeLayout).
	FieldNode16
	FieldNode24
	FieldNode32
	FieldNode40
	FieldNode48
	FieldNode56
	FieldBody     // one of the graphs that a conditional node may run: there are FieldCount
	FieldLocation // of memory: what kind of place in its low half, which one in the high half
	FieldKey      // of a communicator's split: ranks are in its order
	FieldExcluded // a rank that a smaller communicator leaves out
	FieldLeftOut  // how many of them there are
	FieldCaller   // the address that the call returns to
	// FieldHandleAddress is where the call puts the handle that it creates, maybe only
	// after it has returned.
	FieldHandleAddress
	// FieldWork is a c10d::Work: a collective of torch.distributed that was issued.
	FieldWork
	// FieldCopy is a copy of it.
	FieldCopy
	// FieldPythonType is a Python type, by whose name the call is called.
	FieldPythonType
	// FieldNumber is how many collectives a group of ranks has numbered so far.
	FieldNumber
	// FieldDelay is for how long the thread could have run during the call and did not, ns.
	FieldDelay
	// LastField is the highest field.
	LastField = FieldDelay
)

// Kinds of FieldNodeKind: CUgraphNodeType, hipGraphNodeType.
const (
	NodeKernel      = 0
	NodeSet         = 2
	NodeGraph       = 4
	NodeAlloc       = 10
	NodeFree        = 11
	NodeConditional = 13 // CUDA alone
)

// FieldParameter of TellsTime: CL_PROFILING_COMMAND_START and _END, ns of the device's clock.
const (
	OpenCLStarted = 0x1282
	OpenCLEnded   = 0x1283
)

// Kinds of place in FieldLocation: CUmemLocationType, hipMemLocationType.
const (
	LocationDevice          = 1
	LocationHost            = 2
	LocationHostNUMA        = 3
	LocationHostNUMACurrent = 4
)

// NodeLayout says where a node's parameters that may be of any kind have those
// of a kernel and of a memset; the other kinds are the same with CUDA and HIP.
type NodeLayout struct {
	Kernel, As    Field // the word with the kernel, and what it is: FieldKernel, FieldHostStub
	Grid, Block   [3]Half
	Element       Half // bytes of an element that is set
	Width, Height Field
}

// Half is one half of a captured word.
type Half struct {
	Field Field
	High  bool
}

// Low and High are the halves of a word.
func Low(f Field) Half  { return Half{Field: f} }
func High(f Field) Half { return Half{Field: f, High: true} }

// Value says where a captured argument comes from.
type Value struct {
	Field    Field
	Stack    bool // from stack slot Index, else from argument register Index
	Caller   bool // the return address, instead of an argument
	Delay    bool // what the kernel counts of the thread, instead of an argument (FieldDelay)
	Index    uint8
	Derefs   uint8    // how often it is followed as a pointer
	Offset   [2]int16 // bytes added before each step
	AtReturn bool     // an out parameter: followed when the call returns
	Bits     uint8    // how many of its bits count: 0 is all 64
	Shift    uint8    // how many bits lie below it
	Scale    uint8    // what it is multiplied with: 0 is 1
	Signed   bool     // the highest of its Bits is a sign
	Variants []Variant
	// Member is the accessor of the member that the value is, in the same library:
	// where that lies behind the pointer is read from its code. "" where Offset says it.
	Member string
}

// Variant replaces the offset of a value's last step in libraries that define
// a function with the given symbol prefix: a layout that changed.
type Variant struct {
	Symbol string
	Offset int16
}

// Narrow reports whether the value is read from memory as four bytes: what
// lies behind it may not be mapped.
func (v *Value) Narrow() bool {
	return (v.Derefs > 0) && v.Bits > 0 && v.Shift+v.Bits <= 32
}

// Reg is integer argument n as it stands.
func Reg(f Field, n uint8) Value { return Value{Field: f, Index: n} }

// Reg32 is the low 32 bits of integer argument n.
func Reg32(f Field, n uint8) Value { return Value{Field: f, Index: n, Bits: 32} }

// Int32 is the low 32 bits of integer argument n, a signed number.
func Int32(f Field, n uint8) Value { return Value{Field: f, Index: n, Bits: 32, Signed: true} }

// High32 is the high 32 bits of integer argument n: the second member of a
// small struct that goes by value.
func High32(f Field, n uint8) Value { return Value{Field: f, Index: n, Bits: 32, Shift: 32} }

// Slot is stack argument n, counted from the first that found no register.
func Slot(f Field, n uint8) Value { return Value{Field: f, Stack: true, Index: n} }

// Caller is the address that the call returns to: whose code made it.
func Caller() Value { return Value{Field: FieldCaller, Caller: true} }

// Delay is for how long the thread waited for a processor during the call.
func Delay() Value { return Value{Field: FieldDelay, Delay: true, AtReturn: true} }

// Mem is the word at offset bytes behind integer argument n.
func Mem(f Field, n uint8, offset int16, variants ...Variant) Value {
	return Value{Field: f, Index: n, Derefs: 1, Offset: [2]int16{offset}, Variants: variants}
}

// MemberOf is the member of the object behind integer argument n that this accessor, a
// function of the same library, returns: 32 bits of it.
func MemberOf(f Field, n uint8, accessor string) Value {
	return Value{Field: f, Index: n, Derefs: 1, Bits: 32, Member: accessor}
}

// MemberOf2 is the word at offset bytes behind the pointer that such a member is.
func MemberOf2(f Field, n uint8, accessor string, offset int16) Value {
	return Value{Field: f, Index: n, Derefs: 2, Offset: [2]int16{0, offset}, Member: accessor}
}

// Mem32 is the 32 bits at offset bytes behind integer argument n.
func Mem32(f Field, n uint8, offset int16) Value {
	return Value{Field: f, Index: n, Derefs: 1, Offset: [2]int16{offset}, Bits: 32}
}

// Mem2 is the word at the second offset behind the pointer at the first offset
// behind integer argument n.
func Mem2(f Field, n uint8, first, second int16, variants ...Variant) Value {
	return Value{Field: f, Index: n, Derefs: 2, Offset: [2]int16{first, second}, Variants: variants}
}

// Arg is integer argument n, wherever this architecture's calls have it.
func Arg(f Field, n uint8) Value {
	if n < registerArguments {
		return Reg(f, n)
	}
	return Slot(f, n-registerArguments)
}

// Arg32 is the low 32 bits of integer argument n.
func Arg32(f Field, n uint8) Value {
	v := Arg(f, n)
	v.Bits = 32
	return v
}

// OutArg is the word that the call leaves behind integer argument n.
func OutArg(f Field, n uint8) Value {
	v := Arg(f, n)
	v.Derefs, v.AtReturn = 1, true
	return v
}

// OutArg32 is the 32 bits that the call leaves behind integer argument n.
func OutArg32(f Field, n uint8) Value {
	v := OutArg(f, n)
	v.Bits = 32
	return v
}

// OutMem is the word that the call leaves at offset bytes behind integer argument n.
func OutMem(f Field, n uint8, offset int16) Value {
	v := OutArg(f, n)
	v.Offset[0] = offset
	return v
}

// List is the first words behind integer argument n: as many as a call is
// likely to give. How many it gives is in FieldCount.
func List(f Field, n uint8, words int) (list []Value) {
	for i := range words {
		v := Arg(f, n)
		v.Derefs, v.Offset[0] = 1, int16(8*i)
		list = append(list, v)
	}
	return list
}

// OutList is List of what the call leaves there.
func OutList(f Field, n uint8, words int) (list []Value) {
	for i := range words {
		list = append(list, OutMem(f, n, int16(8*i)))
	}
	return list
}

// Out is the word that the call leaves behind integer argument n.
func Out(f Field, n uint8) Value {
	return Value{Field: f, Index: n, Derefs: 1, AtReturn: true}
}

// OutAt is the word that the call leaves at offset bytes behind integer argument n.
func OutAt(f Field, n uint8, offset int16) Value {
	return Value{Field: f, Index: n, Derefs: 1, Offset: [2]int16{offset}, AtReturn: true}
}

// OutAt2 is the word at the second offset behind the pointer that the call leaves
// at the first offset behind integer argument n. Where no pointer is there, it is
// unknown, and that is not counted.
func OutAt2(f Field, n uint8, first, second int16) Value {
	return Value{Field: f, Index: n, Derefs: 2, Offset: [2]int16{first, second}, AtReturn: true}
}

// Out32 is the 32 bits that the call leaves behind integer argument n.
func Out32(f Field, n uint8) Value {
	return Value{Field: f, Index: n, Derefs: 1, AtReturn: true, Bits: 32}
}

// Scaled is a value that counts units of so many bytes.
func Scaled(v Value, scale uint8) Value {
	v.Scale = scale
	return v
}

// Number is what the captured word means as a number.
func (v *Value) Number(word uint64) uint64 {
	word >>= v.Shift
	if v.Bits > 0 && v.Bits < 64 {
		unused := 64 - v.Bits
		word <<= unused
		if v.Signed {
			word = uint64(int64(word) >> unused)
		} else {
			word >>= unused
		}
	}
	if v.Scale > 1 {
		word *= uint64(v.Scale)
	}
	return word
}

// OutMem32 is the 32 bits that the call leaves at offset bytes behind integer argument n.
func OutMem32(f Field, n uint8, offset int16) Value {
	v := OutMem(f, n, offset)
	v.Bits = 32
	return v
}
