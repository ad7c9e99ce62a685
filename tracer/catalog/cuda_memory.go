package catalog

var cudaMemoryGroup = Group{
	Name: "cuda-memory",
	Help: "CUDA driver: device, pooled, managed, pinned and mapped memory",
	Tier: Anchor,
	With: []string{"cuda-code"},
	Functions: concat(
		cuda("cuMemAlloc", "alloc", "", cudaAllocates("device", Out32(FieldAddress, 0), Reg32(FieldBytes, 1))),
		cuda("cuMemAlloc", "alloc", "_v2", cudaAllocates("device", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
		// cuMemAllocPitch(ptr *, pitch *, width, height, element): pitch × height
		cuda("cuMemAllocPitch", "alloc", "", cudaAllocates("device", Out32(FieldAddress, 0), Out32(FieldWidth, 1), Reg32(FieldHeight, 3))),
		cuda("cuMemAllocPitch", "alloc", "_v2", cudaAllocates("device", Out(FieldAddress, 0), Out(FieldWidth, 1), Reg(FieldHeight, 3))),
		cuda("cuMemAllocManaged", "alloc", "", cudaAllocates("managed", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
		cuda("cuMemAllocHost", "alloc", "", cudaAllocates("pinned", Out(FieldAddress, 0), Reg32(FieldBytes, 1))),
		cuda("cuMemAllocHost", "alloc", "_v2", cudaAllocates("pinned", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
		cuda("cuMemHostAlloc", "alloc", "", cudaAllocates("pinned", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
		cuda("cuMemAllocAsync", "alloc", "|_ptsz", cudaAllocates("device", Out(FieldAddress, 0), Reg(FieldBytes, 1), Reg(FieldStream, 2))),
		cuda("cuMemAllocFromPoolAsync", "alloc", "|_ptsz", cudaAllocates("device",
			Out(FieldAddress, 0), Reg(FieldBytes, 1), Reg(FieldPool, 2), Reg(FieldStream, 3))),
		cuda("cuMemFree", "free", "", changesMemory("free", "device", Reg32(FieldAddress, 0))),
		cuda("cuMemFree", "free", "_v2", changesMemory("free", "device", Reg(FieldAddress, 0))),
		cuda("cuMemFreeHost", "free", "", changesMemory("free", "pinned", Reg(FieldAddress, 0))),
		cuda("cuMemFreeAsync", "free", "|_ptsz", changesMemory("free", "device", Reg(FieldAddress, 0), Reg(FieldStream, 1))),
		cudaVirtual,
		// Memory that the job has already is pinned: nothing is allocated.
		cuda("cuMemHostRegister", "alloc", "|_v2", values(Reg(FieldAddress, 0), Reg(FieldBytes, 1))),
		cuda("cuMemHostUnregister", "free", "", values(Reg(FieldAddress, 0))),
	),
}

func cudaAllocates(space string, v ...Value) func(*Function) {
	return allocates(space, cudaOutOfMemory, v...)
}

// cudaVirtual is memory in two halves, physical memory and addresses, joined by
// cuMemMap: expandable segments of PyTorch, vLLM's sleep mode, NCCL's buffers.
// The bytes are those of cuMemCreate; its handle stands for the address.
var cudaVirtual = concat(
	// cuMemCreate(handle *, size, const CUmemAllocationProp *, flags): the
	// property's location is {type, id} @8.
	cuda("cuMemCreate", "alloc", "", cudaAllocates("device",
		Out(FieldAllocation, 0), Reg(FieldBytes, 1), Mem(FieldLocation, 2, 8))),
	cuda("cuMemRelease", "free", "", changesMemory("free", "device", Reg(FieldAllocation, 0))),
	// cuMemMap(ptr, size, offset, handle, flags)
	cuda("cuMemMap", "alloc", "", changesMemory("map", "device",
		Reg(FieldAddress, 0), Reg(FieldBytes, 1), Reg(FieldAllocation, 3))),
	cuda("cuMemUnmap", "free", "", changesMemory("unmap", "device", Reg(FieldAddress, 0), Reg(FieldBytes, 1))),
	cuda("cuMemSetAccess", "alloc", "", values(Reg(FieldAddress, 0), Reg(FieldBytes, 1))),
	cuda("cuMemAddressReserve", "alloc", "", changesMemory("reserve", "device", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
	cuda("cuMemAddressFree", "free", "", changesMemory("unreserve", "device", Reg(FieldAddress, 0), Reg(FieldBytes, 1))),
)
