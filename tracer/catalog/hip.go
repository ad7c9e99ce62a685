package catalog

// HIP, libamdhip64: one library for the runtime and the driver level, never
// linked into programs, so that every launch of rocBLAS, MIOpen, RCCL, PyTorch
// and Triton ends here. The names are those that 5.2 (Debian), 5.7 and 6.4
// export, symbol versions (hip_4.2 to hip_6.x) left off; _spt is the same
// function for a default stream per thread. The argument lists are those of
// hip_runtime_api.h 6.4, the offsets gcc's on x86-64.

const (
	libhip = "libamdhip64.so"

	hipOutOfMemory = 2
	hipNotReady    = 600
)

var hipGroup = Group{
	Name:      "hip",
	Help:      "HIP (AMD): kernel launches, graph launches, copies, sets",
	Tier:      Detail,
	Launches:  true,
	With:      []string{"hip-code"},
	Functions: concat(hipLaunches, hipCopies, hipSets),
}

var hipLaunches = concat(
	// hipError_t hipLaunchKernel(const void *function, dim3 grid, dim3 block,
	//     void **args, | size_t shared, hipStream_t stream): a dim3 goes in two
	// registers, x and y in the first.
	hip("hipLaunchKernel", "launch", "|_spt", hostLaunch),
	hip("hipLaunchCooperativeKernel", "launch", "|_spt", hostLaunch),
	hip("hipExtLaunchKernel", "launch", "", hostLaunch),
	// hipLaunchKernelExC(const hipLaunchConfig_t *, function, args)
	hip("hipLaunchKernelExC", "launch", "", func(f *Function) {
		f.Name = FromKernel
		f.Values = append([]Value{Reg(FieldHostStub, 1)}, configValues...)
	}, since("7.0")),
	// hipDrvLaunchKernelEx(const HIP_LAUNCH_CONFIG *, f, params, extra)
	hip("hipDrvLaunchKernelEx", "launch", "", launchConfig(1), since("7.0")),
	hip("hipModuleLaunchKernel", "launch", "", launch11),
	hip("hipModuleLaunchCooperativeKernel", "launch", "", launch11),
	// These two take work items, not blocks.
	hip("hipExtModuleLaunchKernel", "launch", "", workLaunch),
	hip("hipHccModuleLaunchKernel", "launch", "", workLaunch),
	hip("hipLaunchByPtr", "launch", "", func(f *Function) {
		f.Name, f.Values = FromKernel, []Value{Reg(FieldHostStub, 0)}
	}),
	hip("hipLaunchHostFunc", "callback", "|_spt", values(Reg(FieldStream, 0))),
	hip("hipStreamAddCallback", "callback", "|_spt", values(Reg(FieldStream, 0))),
	hip("hipGraphLaunch", "graph", "|_spt", func(f *Function) {
		f.Effect, f.Values = LaunchesGraph, []Value{Reg(FieldGraphExec, 0), Reg(FieldStream, 1)}
	}),
)

func hostLaunch(f *Function) {
	f.Name = FromKernel
	f.Values = []Value{
		Reg(FieldHostStub, 0), Reg32(FieldGridX, 1), High32(FieldGridY, 1), Reg32(FieldGridZ, 2),
		Reg32(FieldBlockX, 3), High32(FieldBlockY, 3), Reg32(FieldBlockZ, 4),
		Arg32(FieldSharedBytes, 6), Arg(FieldStream, 7),
	}
}

// workLaunch is launch11 with the global size in work items.
func workLaunch(f *Function) {
	launch11(f)
	for i := range f.Values {
		if v := &f.Values[i]; v.Field >= FieldGridX && v.Field <= FieldGridZ {
			v.Field = FieldWorkX + (v.Field - FieldGridX)
		}
	}
}

var hipCopies = concat(
	// hipMemcpy(dst, src, bytes, kind[, stream])
	hip("hipMemcpy", "copy", "|_spt", values(Reg(FieldBytes, 2), Reg32(FieldCopyKind, 3))),
	hip("hipMemcpyAsync", "copy", "|_spt", values(Reg(FieldBytes, 2), Reg32(FieldCopyKind, 3), Reg(FieldStream, 4))),
	hip("hipMemcpyWithStream", "copy", "", values(Reg(FieldBytes, 2), Reg32(FieldCopyKind, 3), Reg(FieldStream, 4))),
	hip("hipMemcpyHtoD", "copy", "", values(Reg(FieldBytes, 2)), hostToDevice),
	hip("hipMemcpyDtoH", "copy", "", values(Reg(FieldBytes, 2)), deviceToHost),
	hip("hipMemcpyDtoD", "copy", "", values(Reg(FieldBytes, 2)), betweenDevices),
	hip("hipMemcpyHtoDAsync", "copy", "", values(Reg(FieldBytes, 2), Reg(FieldStream, 3)), hostToDevice),
	hip("hipMemcpyDtoHAsync", "copy", "", values(Reg(FieldBytes, 2), Reg(FieldStream, 3)), deviceToHost),
	hip("hipMemcpyDtoDAsync", "copy", "", values(Reg(FieldBytes, 2), Reg(FieldStream, 3)), betweenDevices),
	// hipMemcpyPeer(dst, dstDevice, src, srcDevice, bytes[, stream])
	hip("hipMemcpyPeer", "copy", "", values(Int32(FieldPeerDevice, 1), Reg(FieldBytes, 4)), betweenDevices),
	hip("hipMemcpyPeerAsync", "copy", "", values(Int32(FieldPeerDevice, 1), Reg(FieldBytes, 4), Reg(FieldStream, 5)), betweenDevices),
	// hipMemcpy2D(dst, dpitch, src, spitch, width, height, | kind[, stream])
	hip("hipMemcpy2D", "copy", "|_spt", values(Reg(FieldWidth, 4), Reg(FieldHeight, 5), Arg32(FieldCopyKind, 6))),
	hip("hipMemcpy2DAsync", "copy", "|_spt", values(Reg(FieldWidth, 4), Reg(FieldHeight, 5), Arg32(FieldCopyKind, 6), Arg(FieldStream, 7))),
	// hipMemcpy3D(const hipMemcpy3DParms *[, stream]): {srcArray, srcPos, srcPtr,
	// dstArray, dstPos, dstPtr, extent @128, kind @152}
	hip("hipMemcpy3D", "copy", "|_spt", values(hipCopy3D...)),
	hip("hipMemcpy3DAsync", "copy", "|_spt", values(append([]Value{Reg(FieldStream, 1)}, hipCopy3D...)...)),
	// hip_Memcpy2D is CUDA_MEMCPY2D; its memory kinds were renumbered in 6.0
	// and say nothing by themselves.
	hip("hipMemcpyParam2D", "copy", "", values(Mem(FieldWidth, 0, 112), Mem(FieldHeight, 0, 120))),
	hip("hipMemcpyParam2DAsync", "copy", "", values(Reg(FieldStream, 1), Mem(FieldWidth, 0, 112), Mem(FieldHeight, 0, 120))),
	// hipMemcpyToSymbol(symbol, src, bytes, offset, kind[, stream])
	hip("hipMemcpyToSymbol", "copy", "|_spt", values(Reg(FieldBytes, 2), Reg32(FieldCopyKind, 4))),
	hip("hipMemcpyFromSymbol", "copy", "|_spt", values(Reg(FieldBytes, 2), Reg32(FieldCopyKind, 4))),
	hip("hipMemcpyToSymbolAsync", "copy", "|_spt", values(Reg(FieldBytes, 2), Reg32(FieldCopyKind, 4), Reg(FieldStream, 5))),
	hip("hipMemcpyFromSymbolAsync", "copy", "|_spt", values(Reg(FieldBytes, 2), Reg32(FieldCopyKind, 4), Reg(FieldStream, 5))),
	hip("hipMemPrefetchAsync", "copy", "", values(Reg(FieldBytes, 1), Int32(FieldDeviceID, 2), Reg(FieldStream, 3)), managedMove),
)

var hipCopy3D = []Value{
	Mem(FieldWidth, 0, 128), Mem(FieldHeight, 0, 136), Mem(FieldDepth, 0, 144), Mem32(FieldCopyKind, 0, 152),
}

var hipSets = concat(
	// hipMemset(dst, value, bytes[, stream])
	hip("hipMemset", "set", "|_spt", values(Reg(FieldBytes, 2))),
	hip("hipMemsetAsync", "set", "|_spt", values(Reg(FieldBytes, 2), Reg(FieldStream, 3))),
	hip("hipMemsetD8", "set", "", values(Reg(FieldBytes, 2))),
	hip("hipMemsetD16", "set", "", values(Scaled(Reg(FieldBytes, 2), 2))),
	hip("hipMemsetD32", "set", "", values(Scaled(Reg(FieldBytes, 2), 4))),
	hip("hipMemsetD8Async", "set", "", values(Reg(FieldBytes, 2), Reg(FieldStream, 3))),
	hip("hipMemsetD16Async", "set", "", values(Scaled(Reg(FieldBytes, 2), 2), Reg(FieldStream, 3))),
	hip("hipMemsetD32Async", "set", "", values(Scaled(Reg(FieldBytes, 2), 4), Reg(FieldStream, 3))),
	// hipMemset2D(dst, pitch, value, width, height[, stream])
	hip("hipMemset2D", "set", "|_spt", values(Reg(FieldWidth, 3), Reg(FieldHeight, 4))),
	hip("hipMemset2DAsync", "set", "|_spt", values(Reg(FieldWidth, 3), Reg(FieldHeight, 4), Reg(FieldStream, 5))),
)

var hipMemoryGroup = Group{
	Name: "hip-memory",
	Help: "HIP (AMD): device, pooled, managed, pinned and mapped memory",
	Tier: Anchor,
	With: []string{"hip-code"},
	Functions: concat(
		hip("hipMalloc", "alloc", "", hipAllocates("device", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
		hip("hipExtMallocWithFlags", "alloc", "", hipAllocates("device", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
		hip("hipMallocAsync", "alloc", "", hipAllocates("device", Out(FieldAddress, 0), Reg(FieldBytes, 1), Reg(FieldStream, 2))),
		hip("hipMallocFromPoolAsync", "alloc", "", hipAllocates("device",
			Out(FieldAddress, 0), Reg(FieldBytes, 1), Reg(FieldPool, 2), Reg(FieldStream, 3))),
		hip("hipMallocPitch", "alloc", "", hipAllocates("device", Out(FieldAddress, 0), Out(FieldWidth, 1), Reg(FieldHeight, 3))),
		hip("hipMemAllocPitch", "alloc", "", hipAllocates("device", Out(FieldAddress, 0), Out(FieldWidth, 1), Reg(FieldHeight, 3))),
		hip("hipMallocManaged", "alloc", "", hipAllocates("managed", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
		hip("hipHostMalloc", "alloc", "", hipAllocates("pinned", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
		hip("hipHostAlloc", "alloc", "", hipAllocates("pinned", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
		hip("hipMallocHost", "alloc", "", hipAllocates("pinned", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
		hip("hipMemAllocHost", "alloc", "", hipAllocates("pinned", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
		hip("hipFree", "free", "", changesMemory("free", "device", Reg(FieldAddress, 0))),
		hip("hipFreeAsync", "free", "", changesMemory("free", "device", Reg(FieldAddress, 0), Reg(FieldStream, 1))),
		hip("hipHostFree", "free", "", changesMemory("free", "pinned", Reg(FieldAddress, 0))),
		hip("hipFreeHost", "free", "", changesMemory("free", "pinned", Reg(FieldAddress, 0))),
		hipVirtual,
		hip("hipHostRegister", "alloc", "", values(Reg(FieldAddress, 0), Reg(FieldBytes, 1))),
		hip("hipHostUnregister", "free", "", values(Reg(FieldAddress, 0))),
	),
}

func hipAllocates(space string, v ...Value) func(*Function) {
	return allocates(space, hipOutOfMemory, v...)
}

// hipVirtual has the layouts of cudaVirtual, 5.1 and later.
var hipVirtual = concat(
	hip("hipMemCreate", "alloc", "", hipAllocates("device",
		Out(FieldAllocation, 0), Reg(FieldBytes, 1), Mem(FieldLocation, 2, 8))),
	hip("hipMemRelease", "free", "", changesMemory("free", "device", Reg(FieldAllocation, 0))),
	hip("hipMemMap", "alloc", "", changesMemory("map", "device",
		Reg(FieldAddress, 0), Reg(FieldBytes, 1), Reg(FieldAllocation, 3))),
	hip("hipMemUnmap", "free", "", changesMemory("unmap", "device", Reg(FieldAddress, 0), Reg(FieldBytes, 1))),
	hip("hipMemSetAccess", "alloc", "", values(Reg(FieldAddress, 0), Reg(FieldBytes, 1))),
	hip("hipMemAddressReserve", "alloc", "", changesMemory("reserve", "device", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
	hip("hipMemAddressFree", "free", "", changesMemory("unreserve", "device", Reg(FieldAddress, 0), Reg(FieldBytes, 1))),
)

var hipSyncGroup = Group{
	Name: "hip-sync",
	Help: "HIP (AMD): waits, events, and what they tell of the device's time",
	Tier: Anchor,
	With: []string{"hip-code"},
	Functions: concat(
		hip("hipStreamSynchronize", "sync", "|_spt", effect(WaitsStream, Reg(FieldStream, 0))),
		hip("hipEventSynchronize", "sync", "", effect(WaitsEvent, Reg(FieldEvent, 0))),
		hip("hipDeviceSynchronize", "sync", "", effect(WaitsDevice)),
		hip("hipCtxSynchronize", "sync", "", effect(WaitsContext)),
		hip("hipStreamQuery", "event", "|_spt", effect(QueriesStream, Reg(FieldStream, 0))),
		hip("hipEventQuery", "event", "", effect(QueriesEvent, Reg(FieldEvent, 0))),
		hip("hipEventCreate", "event", "", values(Out(FieldEvent, 0))),
		hip("hipEventCreateWithFlags", "event", "", values(Out(FieldEvent, 0))),
		hip("hipEventDestroy", "event", "", effect(DestroysEvent, Reg(FieldEvent, 0))),
		hip("hipEventRecord", "event", "|_spt", effect(RecordsEvent, Reg(FieldEvent, 0), Reg(FieldStream, 1))),
		hip("hipEventRecordWithFlags", "event", "", effect(RecordsEvent, Reg(FieldEvent, 0), Reg(FieldStream, 1))),
		hip("hipEventElapsedTime", "event", "", effect(TellsElapsed,
			Out32(FieldElapsed, 0), Reg(FieldStartEvent, 1), Reg(FieldEvent, 2))),
		hip("hipStreamWaitEvent", "event", "|_spt", effect(StreamWaits, Reg(FieldStream, 0), Reg(FieldEvent, 1))),
	),
}

// hip is one entry point of libamdhip64 in some of its variants.
func hip(name, category, variants string, with ...func(*Function)) []Function {
	return runtimeCalls(Function{
		Library: libhip, Label: name, Category: category, Runtime: "hip", NotReady: hipNotReady,
	}, variants, with)
}
