// Package hip has the table of HIP, libamdhip64: one library for the runtime and the driver level,
// never linked into programs, so that every launch of rocBLAS, MIOpen, RCCL, PyTorch and Triton
// ends here. The names are those that 5.2 (Debian), 5.7 and 6.4 export, symbol versions (hip_4.2
// to hip_6.x) left off; _spt is the same function for a default stream per thread. The argument
// lists are those of hip_runtime_api.h 6.4, the offsets gcc's on x86-64.
//
// The package is no part of the public API: it may change with any version.
package hip

import (
	"slices"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/cuda"
	. "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// Groups lists the groups of this table, in the order in which they are shown.
func Groups() []Group {
	return []Group{callGroup, memoryGroup, syncGroup, codeGroup}
}

const (
	libhip = "libamdhip64.so"

	outOfMemory = 2
	notReady    = 600
)

var callGroup = Group{
	Name:      "hip",
	Help:      "HIP (AMD): kernel launches, graph launches, copies, sets",
	Tier:      Detail,
	Launches:  true,
	With:      []string{"hip-code"},
	Functions: slices.Concat(launches, copies, sets),
}

var launches = slices.Concat(
	// hipError_t hipLaunchKernel(const void *function, dim3 grid, dim3 block,
	//     void **args, | size_t shared, hipStream_t stream): a dim3 goes in two
	// registers, x and y in the first.
	hip("hipLaunchKernel", "launch", "|_spt", hostLaunch),
	hip("hipLaunchCooperativeKernel", "launch", "|_spt", hostLaunch),
	hip("hipExtLaunchKernel", "launch", "", hostLaunch),
	// hipLaunchKernelExC(const hipLaunchConfig_t *, function, args)
	hip("hipLaunchKernelExC", "launch", "", func(f *Function) {
		f.Name = FromKernel
		f.Values = append([]Value{Reg(FieldHostStub, 1)}, cuda.ConfigValues...)
	}, Since("7.0")),
	// hipDrvLaunchKernelEx(const HIP_LAUNCH_CONFIG *, f, params, extra)
	hip("hipDrvLaunchKernelEx", "launch", "", cuda.LaunchKernelEx, Since("7.0")),
	hip("hipModuleLaunchKernel", "launch", "", cuda.LaunchKernel),
	hip("hipModuleLaunchCooperativeKernel", "launch", "", cuda.LaunchKernel),
	// These two take work items, not blocks.
	hip("hipExtModuleLaunchKernel", "launch", "", workLaunch),
	hip("hipHccModuleLaunchKernel", "launch", "", workLaunch),
	hip("hipLaunchByPtr", "launch", "", func(f *Function) {
		f.Name, f.Values = FromKernel, []Value{Reg(FieldHostStub, 0)}
	}),
	hip("hipLaunchHostFunc", "callback", "|_spt", Captures(Reg(FieldStream, 0))),
	hip("hipStreamAddCallback", "callback", "|_spt", Captures(Reg(FieldStream, 0))),
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

// workLaunch is cuda.LaunchKernel with the global size in work items.
func workLaunch(f *Function) {
	cuda.LaunchKernel(f)
	for i := range f.Values {
		if v := &f.Values[i]; v.Field >= FieldGridX && v.Field <= FieldGridZ {
			v.Field = FieldWorkX + (v.Field - FieldGridX)
		}
	}
}

var copies = slices.Concat(
	// hipMemcpy(dst, src, bytes, kind[, stream])
	hip("hipMemcpy", "copy", "|_spt", Captures(Reg(FieldBytes, 2), Reg32(FieldCopyKind, 3))),
	hip("hipMemcpyAsync", "copy", "|_spt", Captures(Reg(FieldBytes, 2), Reg32(FieldCopyKind, 3), Reg(FieldStream, 4))),
	hip("hipMemcpyWithStream", "copy", "", Captures(Reg(FieldBytes, 2), Reg32(FieldCopyKind, 3), Reg(FieldStream, 4))),
	hip("hipMemcpyHtoD", "copy", "", Captures(Reg(FieldBytes, 2)), HostToDevice),
	hip("hipMemcpyDtoH", "copy", "", Captures(Reg(FieldBytes, 2)), DeviceToHost),
	hip("hipMemcpyDtoD", "copy", "", Captures(Reg(FieldBytes, 2)), BetweenDevices),
	hip("hipMemcpyHtoDAsync", "copy", "", Captures(Reg(FieldBytes, 2), Reg(FieldStream, 3)), HostToDevice),
	hip("hipMemcpyDtoHAsync", "copy", "", Captures(Reg(FieldBytes, 2), Reg(FieldStream, 3)), DeviceToHost),
	hip("hipMemcpyDtoDAsync", "copy", "", Captures(Reg(FieldBytes, 2), Reg(FieldStream, 3)), BetweenDevices),
	// hipMemcpyPeer(dst, dstDevice, src, srcDevice, bytes[, stream])
	hip("hipMemcpyPeer", "copy", "", Captures(Int32(FieldPeerDevice, 1), Reg(FieldBytes, 4)), BetweenDevices),
	hip("hipMemcpyPeerAsync", "copy", "", Captures(Int32(FieldPeerDevice, 1), Reg(FieldBytes, 4), Reg(FieldStream, 5)), BetweenDevices),
	// hipMemcpy2D(dst, dpitch, src, spitch, width, height, | kind[, stream])
	hip("hipMemcpy2D", "copy", "|_spt", Captures(Reg(FieldWidth, 4), Reg(FieldHeight, 5), Arg32(FieldCopyKind, 6))),
	hip("hipMemcpy2DAsync", "copy", "|_spt", Captures(Reg(FieldWidth, 4), Reg(FieldHeight, 5), Arg32(FieldCopyKind, 6), Arg(FieldStream, 7))),
	// hipMemcpy3D(const hipMemcpy3DParms *[, stream]): {srcArray, srcPos, srcPtr,
	// dstArray, dstPos, dstPtr, extent @128, kind @152}
	hip("hipMemcpy3D", "copy", "|_spt", Captures(copy3D...)),
	hip("hipMemcpy3DAsync", "copy", "|_spt", Captures(append([]Value{Reg(FieldStream, 1)}, copy3D...)...)),
	// hip_Memcpy2D is CUDA_MEMCPY2D; its memory kinds were renumbered in 6.0
	// and say nothing by themselves.
	hip("hipMemcpyParam2D", "copy", "", Captures(Mem(FieldWidth, 0, 112), Mem(FieldHeight, 0, 120))),
	hip("hipMemcpyParam2DAsync", "copy", "", Captures(Reg(FieldStream, 1), Mem(FieldWidth, 0, 112), Mem(FieldHeight, 0, 120))),
	// hipMemcpyToSymbol(symbol, src, bytes, offset, kind[, stream])
	hip("hipMemcpyToSymbol", "copy", "|_spt", Captures(Reg(FieldBytes, 2), Reg32(FieldCopyKind, 4))),
	hip("hipMemcpyFromSymbol", "copy", "|_spt", Captures(Reg(FieldBytes, 2), Reg32(FieldCopyKind, 4))),
	hip("hipMemcpyToSymbolAsync", "copy", "|_spt", Captures(Reg(FieldBytes, 2), Reg32(FieldCopyKind, 4), Reg(FieldStream, 5))),
	hip("hipMemcpyFromSymbolAsync", "copy", "|_spt", Captures(Reg(FieldBytes, 2), Reg32(FieldCopyKind, 4), Reg(FieldStream, 5))),
	hip("hipMemPrefetchAsync", "copy", "", Captures(Reg(FieldBytes, 1), Int32(FieldDeviceID, 2), Reg(FieldStream, 3)), ManagedMove),
)

var copy3D = []Value{
	Mem(FieldWidth, 0, 128), Mem(FieldHeight, 0, 136), Mem(FieldDepth, 0, 144), Mem32(FieldCopyKind, 0, 152),
}

var sets = slices.Concat(
	// hipMemset(dst, value, bytes[, stream])
	hip("hipMemset", "set", "|_spt", Captures(Reg(FieldBytes, 2))),
	hip("hipMemsetAsync", "set", "|_spt", Captures(Reg(FieldBytes, 2), Reg(FieldStream, 3))),
	hip("hipMemsetD8", "set", "", Captures(Reg(FieldBytes, 2))),
	hip("hipMemsetD16", "set", "", Captures(Scaled(Reg(FieldBytes, 2), 2))),
	hip("hipMemsetD32", "set", "", Captures(Scaled(Reg(FieldBytes, 2), 4))),
	hip("hipMemsetD8Async", "set", "", Captures(Reg(FieldBytes, 2), Reg(FieldStream, 3))),
	hip("hipMemsetD16Async", "set", "", Captures(Scaled(Reg(FieldBytes, 2), 2), Reg(FieldStream, 3))),
	hip("hipMemsetD32Async", "set", "", Captures(Scaled(Reg(FieldBytes, 2), 4), Reg(FieldStream, 3))),
	// hipMemset2D(dst, pitch, value, width, height[, stream])
	hip("hipMemset2D", "set", "|_spt", Captures(Reg(FieldWidth, 3), Reg(FieldHeight, 4))),
	hip("hipMemset2DAsync", "set", "|_spt", Captures(Reg(FieldWidth, 3), Reg(FieldHeight, 4), Reg(FieldStream, 5))),
)

var memoryGroup = Group{
	Name:   "hip-memory",
	Anchor: true,
	Help:   "HIP (AMD): device, pooled, managed, pinned and mapped memory",
	Tier:   Anchor,
	With:   []string{"hip-code"},
	Functions: slices.Concat(
		hip("hipMalloc", "alloc", "", allocates("device", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
		hip("hipExtMallocWithFlags", "alloc", "", allocates("device", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
		hip("hipMallocAsync", "alloc", "", allocates("device", Out(FieldAddress, 0), Reg(FieldBytes, 1), Reg(FieldStream, 2))),
		hip("hipMallocFromPoolAsync", "alloc", "", allocates("device",
			Out(FieldAddress, 0), Reg(FieldBytes, 1), Reg(FieldPool, 2), Reg(FieldStream, 3))),
		hip("hipMallocPitch", "alloc", "", allocates("device", Out(FieldAddress, 0), Out(FieldWidth, 1), Reg(FieldHeight, 3))),
		hip("hipMemAllocPitch", "alloc", "", allocates("device", Out(FieldAddress, 0), Out(FieldWidth, 1), Reg(FieldHeight, 3))),
		hip("hipMallocManaged", "alloc", "", allocates("managed", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
		hip("hipHostMalloc", "alloc", "", allocates("pinned", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
		hip("hipHostAlloc", "alloc", "", allocates("pinned", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
		hip("hipMallocHost", "alloc", "", allocates("pinned", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
		hip("hipMemAllocHost", "alloc", "", allocates("pinned", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
		hip("hipFree", "free", "", ChangesMemory("free", "device", Reg(FieldAddress, 0))),
		hip("hipFreeAsync", "free", "", ChangesMemory("free", "device", Reg(FieldAddress, 0), Reg(FieldStream, 1))),
		hip("hipHostFree", "free", "", ChangesMemory("free", "pinned", Reg(FieldAddress, 0))),
		hip("hipFreeHost", "free", "", ChangesMemory("free", "pinned", Reg(FieldAddress, 0))),
		virtual,
		hip("hipHostRegister", "alloc", "", Captures(Reg(FieldAddress, 0), Reg(FieldBytes, 1))),
		hip("hipHostUnregister", "free", "", Captures(Reg(FieldAddress, 0))),
	),
}

func allocates(space string, v ...Value) func(*Function) {
	return Allocates(space, outOfMemory, v...)
}

// virtual has the layouts of cudaVirtual, 5.1 and later.
var virtual = slices.Concat(
	hip("hipMemCreate", "alloc", "", allocates("device",
		Out(FieldAllocation, 0), Reg(FieldBytes, 1), Mem(FieldLocation, 2, 8))),
	hip("hipMemRelease", "free", "", ChangesMemory("free", "device", Reg(FieldAllocation, 0))),
	hip("hipMemMap", "alloc", "", ChangesMemory("map", "device",
		Reg(FieldAddress, 0), Reg(FieldBytes, 1), Reg(FieldAllocation, 3))),
	hip("hipMemUnmap", "free", "", ChangesMemory("unmap", "device", Reg(FieldAddress, 0), Reg(FieldBytes, 1))),
	hip("hipMemSetAccess", "alloc", "", Captures(Reg(FieldAddress, 0), Reg(FieldBytes, 1))),
	hip("hipMemAddressReserve", "alloc", "", ChangesMemory("reserve", "device", Out(FieldAddress, 0), Reg(FieldBytes, 1))),
	hip("hipMemAddressFree", "free", "", ChangesMemory("unreserve", "device", Reg(FieldAddress, 0), Reg(FieldBytes, 1))),
)

var syncGroup = Group{
	Name:   "hip-sync",
	Anchor: true,
	Help:   "HIP (AMD): waits, events, and what they tell of the device's time",
	Tier:   Anchor,
	With:   []string{"hip-code"},
	Functions: slices.Concat(
		hip("hipStreamSynchronize", "sync", "|_spt", Changes(WaitsStream, Reg(FieldStream, 0), Delay())),
		hip("hipEventSynchronize", "sync", "", Changes(WaitsEvent, Reg(FieldEvent, 0), Delay())),
		hip("hipDeviceSynchronize", "sync", "", Changes(WaitsDevice, Delay())),
		hip("hipCtxSynchronize", "sync", "", Changes(WaitsContext, Delay())),
		hip("hipStreamQuery", "event", "|_spt", Changes(QueriesStream, Reg(FieldStream, 0))),
		hip("hipEventQuery", "event", "", Changes(QueriesEvent, Reg(FieldEvent, 0))),
		hip("hipEventCreate", "event", "", Captures(Out(FieldEvent, 0))),
		hip("hipEventCreateWithFlags", "event", "", Captures(Out(FieldEvent, 0))),
		hip("hipEventDestroy", "event", "", Changes(DestroysEvent, Reg(FieldEvent, 0))),
		hip("hipEventRecord", "event", "|_spt", Changes(RecordsEvent, Reg(FieldEvent, 0), Reg(FieldStream, 1))),
		hip("hipEventRecordWithFlags", "event", "", Changes(RecordsEvent, Reg(FieldEvent, 0), Reg(FieldStream, 1))),
		hip("hipEventElapsedTime", "event", "", Changes(TellsElapsed,
			Out32(FieldElapsed, 0), Reg(FieldStartEvent, 1), Reg(FieldEvent, 2))),
		hip("hipStreamWaitEvent", "event", "|_spt", Changes(StreamWaits, Reg(FieldStream, 0), Reg(FieldEvent, 1))),
	),
}

// hip is one entry point of libamdhip64 in some of its variants.
func hip(name, category, variants string, with ...func(*Function)) []Function {
	return EntryPoints(Function{
		Library: libhip, Label: name, Category: category, Runtime: "hip", NotReady: notReady,
	}, variants, with)
}
