package catalog

import "slices"

// Modules, kernels, devices, queues, lists, memory and waits of Level Zero.

var levelZeroCodeGroup = Group{
	Name:      "level-zero-code",
	Help:      "Level Zero: modules, kernels, devices, queues, command lists",
	Tier:      Anchor,
	Functions: concat(zeKernels, zePlaces, zeLists),
}

var zeKernels = []Function{
	// zeModuleCreate(context, device, description *, module *, log *)
	ze("zeModuleCreate", "module", effect(LoadsModule, Reg(FieldContext, 0), Reg(FieldDeviceHandle, 1), Out(FieldModule, 3))),
	ze("zeModuleDynamicLink", "module"),
	ze("zeModuleDestroy", "module", effect(UnloadsModule, Reg(FieldModule, 0))),
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
	ze("zeKernelSetGroupSize", "module", effect(SizesKernel,
		Reg(FieldKernel, 0), Reg32(FieldBlockX, 1), Reg32(FieldBlockY, 2), Reg32(FieldBlockZ, 3))),
}

var zePlaces = []Function{
	// zeDeviceGet(driver, n *, devices)
	ze("zeDeviceGet", "context", effect(NumbersDevices,
		slices.Concat([]Value{Out32(FieldSerial, 1)}, OutList(FieldDeviceHandle, 2, 8))...)),
	// zeDeviceGetProperties(device, {stype @0, timerResolution @80, kernelTimestampValidBits @92} *):
	// ns of a tick, in version 1.2 of the struct ticks a second
	ze("zeDeviceGetProperties", "context", effect(TellsTick,
		Mem32(FieldParameter, 1, 0), OutMem(FieldTickNS, 1, 80), OutMem32(FieldTickBits, 1, 92))),
	ze("zeContextCreate", "context", values(Out(FieldContext, 2))),
	ze("zeContextCreateEx", "context", values(OutArg(FieldContext, 4))),
	ze("zeContextDestroy", "context", values(Reg(FieldContext, 0))),
	// zeContextMakeMemoryResident(context, device, pointer, bytes)
	ze("zeContextMakeMemoryResident", "copy", values(Reg(FieldDeviceHandle, 1), Reg(FieldBytes, 3))),
	ze("zeContextEvictMemory", "copy", values(Reg(FieldDeviceHandle, 1), Reg(FieldBytes, 3))),
	// zeCommandQueueCreate(context, device, {flags @24, mode @28} *, queue *)
	ze("zeCommandQueueCreate", "stream", zeCreates),
	ze("zeCommandQueueDestroy", "stream", effect(DestroysStream, Reg(FieldStream, 0))),
}

// zeCreates is a queue or an immediate list.
func zeCreates(f *Function) {
	f.Effect, f.Parameter, f.OrderedBy = OrdersStream, zeQueueInOrder, true
	f.Values = []Value{
		Reg(FieldContext, 0), Reg(FieldDeviceHandle, 1), Mem32(FieldFlags, 2, 24), Mem32(FieldBlocking, 2, 28), Out(FieldStream, 3),
	}
}

var zeLists = []Function{
	ze("zeCommandListCreateImmediate", "stream", zeCreates),
	// zeCommandListCreate(context, device, description *, list *)
	ze("zeCommandListCreate", "graph", effect(BeginsCapture, Reg(FieldContext, 0), Reg(FieldDeviceHandle, 1), Out(FieldStream, 3))),
	ze("zeCommandListClose", "graph", values(Reg(FieldStream, 0))),
	ze("zeCommandListReset", "graph", effect(BeginsCapture, Reg(FieldStream, 0))),
	ze("zeCommandListDestroy", "graph", effect(DropsCapture, Reg(FieldStream, 0))),
}

var levelZeroMemoryGroup = Group{
	Name: "level-zero-memory",
	Help: "Level Zero: device, host, shared and mapped memory",
	Tier: Anchor,
	With: []string{"level-zero-code"},
	Functions: []Function{
		// zeMemAllocDevice(context, description *, bytes, alignment, device, pointer *)
		ze("zeMemAllocDevice", "alloc", allocates("device", zeOutOfDeviceMemory,
			Reg(FieldContext, 0), Reg(FieldBytes, 2), Reg(FieldDeviceHandle, 4), OutArg(FieldAddress, 5))),
		ze("zeMemAllocHost", "alloc", allocates("pinned", zeOutOfDeviceMemory,
			Reg(FieldContext, 0), Reg(FieldBytes, 2), OutArg(FieldAddress, 4))),
		// zeMemAllocShared(context, device's *, host's *, bytes, alignment, device, pointer *)
		ze("zeMemAllocShared", "alloc", allocates("managed", zeOutOfDeviceMemory,
			Reg(FieldContext, 0), Reg(FieldBytes, 3), Reg(FieldDeviceHandle, 5), OutArg(FieldAddress, 6))),
		ze("zeMemFree", "free", changesMemory("free", "device", Reg(FieldAddress, 1))),
		ze("zeMemFreeExt", "free", changesMemory("free", "device", Reg(FieldAddress, 2))),
		// zePhysicalMemCreate(context, device, {bytes @24} *, handle *)
		ze("zePhysicalMemCreate", "alloc", allocates("device", zeOutOfDeviceMemory,
			Reg(FieldDeviceHandle, 1), Mem(FieldBytes, 2, 24), Out(FieldAllocation, 3))),
		ze("zePhysicalMemDestroy", "free", changesMemory("free", "device", Reg(FieldAllocation, 1))),
		// zeVirtualMemReserve(context, start, bytes, pointer *)
		ze("zeVirtualMemReserve", "alloc", changesMemory("reserve", "device", Reg(FieldBytes, 2), Out(FieldAddress, 3))),
		ze("zeVirtualMemFree", "free", changesMemory("unreserve", "device", Reg(FieldAddress, 1), Reg(FieldBytes, 2))),
		// zeVirtualMemMap(context, pointer, bytes, handle, offset, access)
		ze("zeVirtualMemMap", "alloc", changesMemory("map", "device", Reg(FieldAddress, 1), Reg(FieldBytes, 2), Reg(FieldAllocation, 3))),
		ze("zeVirtualMemUnmap", "free", changesMemory("unmap", "device", Reg(FieldAddress, 1), Reg(FieldBytes, 2))),
		ze("zeImageCreate", "alloc", values(Reg(FieldContext, 0), Reg(FieldDeviceHandle, 1))),
		ze("zeImageDestroy", "free"),
	},
}

var levelZeroSyncGroup = Group{
	Name: "level-zero-sync",
	Help: "Level Zero: waits, events, fences, and what they tell of the device's time",
	Tier: Anchor,
	With: []string{"level-zero-code"},
	Functions: []Function{
		ze("zeCommandQueueSynchronize", "sync", effect(WaitsStream, Reg(FieldStream, 0))),
		ze("zeCommandListHostSynchronize", "sync", effect(WaitsStream, Reg(FieldStream, 0))),
		ze("zeDeviceSynchronize", "sync", values(Reg(FieldDeviceHandle, 0))),
		ze("zeEventHostSynchronize", "sync", effect(WaitsEvent, Reg(FieldEvent, 0))),
		ze("zeEventQueryStatus", "event", effect(QueriesEvent, Reg(FieldEvent, 0))),
		ze("zeFenceHostSynchronize", "sync", effect(WaitsEvent, Reg(FieldEvent, 0))),
		ze("zeFenceQueryStatus", "event", effect(QueriesEvent, Reg(FieldEvent, 0))),
		// zeEventQueryKernelTimestamp(event, {global {start @0, end @8}, context} *)
		ze("zeEventQueryKernelTimestamp", "event", effect(TellsTicks,
			Reg(FieldEvent, 0), OutMem(FieldTicksFrom, 1, 0), OutMem(FieldTicksTo, 1, 8))),
		// What an event stands for is not known any more once it was reset, or
		// signalled by something else than a command.
		ze("zeEventHostSignal", "event", effect(DestroysEvent, Reg(FieldEvent, 0))),
		ze("zeEventHostReset", "event", effect(DestroysEvent, Reg(FieldEvent, 0))),
		ze("zeEventDestroy", "event", effect(DestroysEvent, Reg(FieldEvent, 0))),
		ze("zeFenceReset", "event", effect(DestroysEvent, Reg(FieldEvent, 0))),
		ze("zeFenceDestroy", "event", effect(DestroysEvent, Reg(FieldEvent, 0))),
		ze("zeCommandListAppendSignalEvent", "event", effect(DestroysEvent, Reg(FieldStream, 0), Reg(FieldEvent, 1))),
		ze("zeCommandListAppendEventReset", "event", effect(DestroysEvent, Reg(FieldStream, 0), Reg(FieldEvent, 1))),
		ze("zeCommandListAppendWaitOnEvents", "event", values(Reg(FieldStream, 0))),
		// zeCommandListAppendBarrier(list, event, n, events): without events, behind
		// all that the list has
		ze("zeCommandListAppendBarrier", "event", effect(RecordsEvent, Reg(FieldStream, 0), Reg(FieldEvent, 1), Reg32(FieldCount, 2))),
		ze("zeCommandListAppendMemoryRangesBarrier", "event", values(Reg(FieldStream, 0))),
		ze("zeCommandListAppendQueryKernelTimestamps", "event", values(Reg(FieldStream, 0))),
		ze("zeCommandListAppendWriteGlobalTimestamp", "event", values(Reg(FieldStream, 0))),
	},
}
