package cuda

import (
	"slices"

	. "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

var memoryGroup = Group{
	Name:   "cuda-memory",
	Anchor: true,
	Help:   "CUDA driver: device, pooled, managed, pinned and mapped memory",
	Tier:   Anchor,
	With:   []string{"cuda-code"},
	Functions: slices.Concat(
		cuda("cuMemAlloc", "alloc", "", allocates("device", Out32(FieldAddress, 0), Reg32(FieldBytes, 1))),
		cuda("cuMemAlloc", "alloc", "_v2", allocates("device", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
		// cuMemAllocPitch(ptr *, pitch *, width, height, element): pitch × height
		cuda("cuMemAllocPitch", "alloc", "", allocates("device", Out32(FieldAddress, 0), Out32(FieldWidth, 1), Reg32(FieldHeight, 3))),
		cuda("cuMemAllocPitch", "alloc", "_v2", allocates("device", Out(FieldAddress, 0), Out(FieldWidth, 1), Reg(FieldHeight, 3))),
		cuda("cuMemAllocManaged", "alloc", "", allocates("managed", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
		cuda("cuMemAllocHost", "alloc", "", allocates("pinned", Out(FieldAddress, 0), Reg32(FieldBytes, 1))),
		cuda("cuMemAllocHost", "alloc", "_v2", allocates("pinned", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
		cuda("cuMemHostAlloc", "alloc", "", allocates("pinned", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
		cuda("cuMemAllocAsync", "alloc", "|_ptsz", allocates("device", Out(FieldAddress, 0), Reg(FieldBytes, 1), Reg(FieldStream, 2))),
		cuda("cuMemAllocFromPoolAsync", "alloc", "|_ptsz", allocates("device",
			Out(FieldAddress, 0), Reg(FieldBytes, 1), Reg(FieldPool, 2), Reg(FieldStream, 3))),
		cuda("cuMemFree", "free", "", ChangesMemory("free", "device", Reg32(FieldAddress, 0))),
		cuda("cuMemFree", "free", "_v2", ChangesMemory("free", "device", Reg(FieldAddress, 0))),
		cuda("cuMemFreeHost", "free", "", ChangesMemory("free", "pinned", Reg(FieldAddress, 0))),
		cuda("cuMemFreeAsync", "free", "|_ptsz", ChangesMemory("free", "device", Reg(FieldAddress, 0), Reg(FieldStream, 1))),
		virtual,
		// Memory that the job has already is pinned: nothing is allocated.
		cuda("cuMemHostRegister", "alloc", "|_v2", Captures(Reg(FieldAddress, 0), Reg(FieldBytes, 1))),
		cuda("cuMemHostUnregister", "free", "", Captures(Reg(FieldAddress, 0))),
	),
}

func allocates(space string, v ...Value) func(*Function) {
	return Allocates(space, outOfMemory, v...)
}

// virtual is memory in two halves, physical memory and addresses, joined by
// cuMemMap: expandable segments of PyTorch, vLLM's sleep mode, NCCL's buffers.
// The bytes are those of cuMemCreate; its handle stands for the address.
var virtual = slices.Concat(
	// cuMemCreate(handle *, size, const CUmemAllocationProp *, flags): the
	// property's location is {type, id} @8.
	cuda("cuMemCreate", "alloc", "", allocates("device",
		Out(FieldAllocation, 0), Reg(FieldBytes, 1), Mem(FieldLocation, 2, 8))),
	cuda("cuMemRelease", "free", "", ChangesMemory("free", "device", Reg(FieldAllocation, 0))),
	// cuMemMap(ptr, size, offset, handle, flags)
	cuda("cuMemMap", "alloc", "", ChangesMemory("map", "device",
		Reg(FieldAddress, 0), Reg(FieldBytes, 1), Reg(FieldAllocation, 3))),
	cuda("cuMemUnmap", "free", "", ChangesMemory("unmap", "device", Reg(FieldAddress, 0), Reg(FieldBytes, 1))),
	cuda("cuMemSetAccess", "alloc", "", Captures(Reg(FieldAddress, 0), Reg(FieldBytes, 1))),
	cuda("cuMemAddressReserve", "alloc", "", ChangesMemory("reserve", "device", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
	cuda("cuMemAddressFree", "free", "", ChangesMemory("unreserve", "device", Reg(FieldAddress, 0), Reg(FieldBytes, 1))),
)
