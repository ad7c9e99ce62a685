package levelzero

import (
	"slices"

	. "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// Modules, kernels, devices, queues, lists, memory and waits of Level Zero.

var codeGroup = Group{
	Name:      "level-zero-code",
	Anchor:    true,
	Help:      "Level Zero: modules, kernels, devices, queues, command lists",
	Tier:      Anchor,
	Functions: slices.Concat(kernels, places, lists),
}

var kernels = []Function{
	// zeModuleCreate(context, device, description *, module *, log *)
	ze("zeModuleCreate", "module", Changes(LoadsModule, Reg(FieldContext, 0), Reg(FieldDeviceHandle, 1), Out(FieldModule, 3))),
	ze("zeModuleDynamicLink", "module"),
	ze("zeModuleDestroy", "module", Changes(UnloadsModule, Reg(FieldModule, 0))),
	// zeKernelCreate(module, {…, name @24} *, kernel *)
	ze("zeKernelCreate", "module", func(f *Function) {
		f.Effect = NamesKernel
		f.Values = []Value{Reg(FieldModule, 0), Mem(FieldNone, 1, 24), Out(FieldHandle, 2)}
		f.Text, f.TextArg = CStringOut, 1
	}),
	// zeKernelGetName(kernel, bytes *, char *)
	ze("zeKernelGetName", "module", func(f *Function) {
		f.Effect = NamesKernel
		f.Values = []Value{Reg(FieldHandle, 0), Reg(FieldNone, 2)}
		f.Text, f.TextArg = CStringOut, 1
	}),
	ze("zeKernelDestroy", "module"),
	ze("zeKernelSetGroupSize", "module", Changes(SizesKernel,
		Reg(FieldKernel, 0), Reg32(FieldBlockX, 1), Reg32(FieldBlockY, 2), Reg32(FieldBlockZ, 3))),
}

var places = []Function{
	// zeDeviceGet(driver, n *, devices)
	ze("zeDeviceGet", "context", Changes(NumbersDevices,
		slices.Concat([]Value{Out32(FieldSerial, 1)}, OutList(FieldDeviceHandle, 2, 8))...)),
	// zeDeviceGetProperties(device, {stype @0, timerResolution @80, kernelTimestampValidBits @92} *):
	// ns of a tick, in version 1.2 of the struct ticks a second
	ze("zeDeviceGetProperties", "context", Changes(TellsTick,
		Mem32(FieldParameter, 1, 0), OutMem(FieldTickNS, 1, 80), OutMem32(FieldTickBits, 1, 92))),
	ze("zeContextCreate", "context", Captures(Out(FieldContext, 2))),
	ze("zeContextCreateEx", "context", Captures(OutArg(FieldContext, 4))),
	ze("zeContextDestroy", "context", Captures(Reg(FieldContext, 0))),
	// zeContextMakeMemoryResident(context, device, pointer, bytes)
	ze("zeContextMakeMemoryResident", "copy", Captures(Reg(FieldDeviceHandle, 1), Reg(FieldBytes, 3))),
	ze("zeContextEvictMemory", "copy", Captures(Reg(FieldDeviceHandle, 1), Reg(FieldBytes, 3))),
	// zeCommandQueueCreate(context, device, {flags @24, mode @28} *, queue *)
	ze("zeCommandQueueCreate", "stream", creates),
	ze("zeCommandQueueDestroy", "stream", Changes(DestroysStream, Reg(FieldStream, 0))),
}

// creates is a queue or an immediate list.
func creates(f *Function) {
	f.Effect, f.Parameter, f.OrderedBy = OrdersStream, queueInOrder, true
	f.Values = []Value{
		Reg(FieldContext, 0), Reg(FieldDeviceHandle, 1), Mem32(FieldFlags, 2, 24), Mem32(FieldBlocking, 2, 28), Out(FieldStream, 3),
	}
}

var lists = []Function{
	ze("zeCommandListCreateImmediate", "stream", creates),
	// zeCommandListCreate(context, device, description *, list *)
	ze("zeCommandListCreate", "graph", Changes(BeginsCapture, Reg(FieldContext, 0), Reg(FieldDeviceHandle, 1), Out(FieldStream, 3))),
	ze("zeCommandListClose", "graph", Captures(Reg(FieldStream, 0))),
	ze("zeCommandListReset", "graph", Changes(BeginsCapture, Reg(FieldStream, 0))),
	ze("zeCommandListDestroy", "graph", Changes(DropsCapture, Reg(FieldStream, 0))),
}

var memoryGroup = Group{
	Name:   "level-zero-memory",
	Anchor: true,
	Help:   "Level Zero: device, host, shared and mapped memory",
	Tier:   Anchor,
	With:   []string{"level-zero-code"},
	Functions: []Function{
		// zeMemAllocDevice(context, description *, bytes, alignment, device, pointer *)
		ze("zeMemAllocDevice", "alloc", Allocates("device", outOfDeviceMemory,
			Reg(FieldContext, 0), Reg(FieldBytes, 2), Reg(FieldDeviceHandle, 4), OutArg(FieldAddress, 5))),
		ze("zeMemAllocHost", "alloc", Allocates("pinned", outOfDeviceMemory,
			Reg(FieldContext, 0), Reg(FieldBytes, 2), OutArg(FieldAddress, 4))),
		// zeMemAllocShared(context, device's *, host's *, bytes, alignment, device, pointer *)
		ze("zeMemAllocShared", "alloc", Allocates("managed", outOfDeviceMemory,
			Reg(FieldContext, 0), Reg(FieldBytes, 3), Reg(FieldDeviceHandle, 5), OutArg(FieldAddress, 6))),
		ze("zeMemFree", "free", ChangesMemory("free", "device", Reg(FieldAddress, 1))),
		ze("zeMemFreeExt", "free", ChangesMemory("free", "device", Reg(FieldAddress, 2))),
		// zePhysicalMemCreate(context, device, {bytes @24} *, handle *)
		ze("zePhysicalMemCreate", "alloc", Allocates("device", outOfDeviceMemory,
			Reg(FieldDeviceHandle, 1), Mem(FieldBytes, 2, 24), Out(FieldAllocation, 3))),
		ze("zePhysicalMemDestroy", "free", ChangesMemory("free", "device", Reg(FieldAllocation, 1))),
		// zeVirtualMemReserve(context, start, bytes, pointer *)
		ze("zeVirtualMemReserve", "alloc", ChangesMemory("reserve", "device", Reg(FieldBytes, 2), Out(FieldAddress, 3))),
		ze("zeVirtualMemFree", "free", ChangesMemory("unreserve", "device", Reg(FieldAddress, 1), Reg(FieldBytes, 2))),
		// zeVirtualMemMap(context, pointer, bytes, handle, offset, access)
		ze("zeVirtualMemMap", "alloc", ChangesMemory("map", "device", Reg(FieldAddress, 1), Reg(FieldBytes, 2), Reg(FieldAllocation, 3))),
		ze("zeVirtualMemUnmap", "free", ChangesMemory("unmap", "device", Reg(FieldAddress, 1), Reg(FieldBytes, 2))),
		ze("zeImageCreate", "alloc", Captures(Reg(FieldContext, 0), Reg(FieldDeviceHandle, 1))),
		ze("zeImageDestroy", "free"),
	},
}

var syncGroup = Group{
	Name:   "level-zero-sync",
	Anchor: true,
	Help:   "Level Zero: waits, events, fences, and what they tell of the device's time",
	Tier:   Anchor,
	With:   []string{"level-zero-code"},
	Functions: []Function{
		ze("zeCommandQueueSynchronize", "sync", Changes(WaitsStream, Reg(FieldStream, 0))),
		ze("zeCommandListHostSynchronize", "sync", Changes(WaitsStream, Reg(FieldStream, 0))),
		ze("zeDeviceSynchronize", "sync", Captures(Reg(FieldDeviceHandle, 0))),
		ze("zeEventHostSynchronize", "sync", Changes(WaitsEvent, Reg(FieldEvent, 0))),
		ze("zeEventQueryStatus", "event", Changes(QueriesEvent, Reg(FieldEvent, 0))),
		ze("zeFenceHostSynchronize", "sync", Changes(WaitsEvent, Reg(FieldEvent, 0))),
		ze("zeFenceQueryStatus", "event", Changes(QueriesEvent, Reg(FieldEvent, 0))),
		// zeEventQueryKernelTimestamp(event, {global {start @0, end @8}, context} *)
		ze("zeEventQueryKernelTimestamp", "event", Changes(TellsTicks,
			Reg(FieldEvent, 0), OutMem(FieldTicksFrom, 1, 0), OutMem(FieldTicksTo, 1, 8))),
		// What an event stands for is not known any more once it was reset, or
		// signalled by something else than a command.
		ze("zeEventHostSignal", "event", Changes(DestroysEvent, Reg(FieldEvent, 0))),
		ze("zeEventHostReset", "event", Changes(DestroysEvent, Reg(FieldEvent, 0))),
		ze("zeEventDestroy", "event", Changes(DestroysEvent, Reg(FieldEvent, 0))),
		ze("zeFenceReset", "event", Changes(DestroysEvent, Reg(FieldEvent, 0))),
		ze("zeFenceDestroy", "event", Changes(DestroysEvent, Reg(FieldEvent, 0))),
		ze("zeCommandListAppendSignalEvent", "event", Changes(DestroysEvent, Reg(FieldStream, 0), Reg(FieldEvent, 1))),
		ze("zeCommandListAppendEventReset", "event", Changes(DestroysEvent, Reg(FieldStream, 0), Reg(FieldEvent, 1))),
		ze("zeCommandListAppendWaitOnEvents", "event", Captures(Reg(FieldStream, 0))),
		// zeCommandListAppendBarrier(list, event, n, events): without events, behind
		// all that the list has
		ze("zeCommandListAppendBarrier", "event", Changes(RecordsEvent, Reg(FieldStream, 0), Reg(FieldEvent, 1), Reg32(FieldCount, 2))),
		ze("zeCommandListAppendMemoryRangesBarrier", "event", Captures(Reg(FieldStream, 0))),
		ze("zeCommandListAppendQueryKernelTimestamps", "event", Captures(Reg(FieldStream, 0))),
		ze("zeCommandListAppendWriteGlobalTimestamp", "event", Captures(Reg(FieldStream, 0))),
	},
}
