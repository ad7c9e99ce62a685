// Package levelzero has the table of Level Zero, from the loader's exports: the driver behind it
// is called through a table and not probed, so no call is seen twice. The argument lists and the
// offsets in structs are those of ze_api.h 1.8.12 and 1.32.0 (Debian's libze-dev). All are C
// functions that neither throw nor run caller code.
// https://oneapi-src.github.io/level-zero-spec/level-zero/latest/core/api.html
//
// A command list is a stream here. Commands of an immediate list run at once; a regular list
// records them, and a queue runs the list: like a capture and its replays.
//
// The package is no part of the public API: it may change with any version.
package levelzero

import (
	"slices"

	. "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// Groups lists the groups of this table, in the order in which they are shown.
func Groups() []Group {
	return []Group{callGroup, memoryGroup, syncGroup, codeGroup}
}

const (
	libZeLoader = "libze_loader.so"

	notReady          = 1
	outOfDeviceMemory = 0x70000003
	// ZE_COMMAND_QUEUE_FLAG_IN_ORDER, of immediate lists too (1.9)
	queueInOrder = 1 << 1
)

// mostLists is how many of the lists that a call executes are looked at.
const mostLists = 8

var callGroup = Group{
	Name:     "level-zero",
	Help:     "Level Zero: kernel launches, copies, sets, runs of command lists",
	Tier:     Detail,
	Launches: true,
	With:     []string{"level-zero-code"},
	Functions: slices.Concat(launches, copies, images, graphs, []Function{
		// zeCommandQueueExecuteCommandLists(queue, n, lists, fence)
		ze("zeCommandQueueExecuteCommandLists", "graph", func(f *Function) {
			f.Effect = ExecutesLists
			f.Values = slices.Concat([]Value{Reg(FieldStream, 0), Reg32(FieldCount, 1), Reg(FieldEvent, 3)}, List(FieldList, 2, mostLists))
		}),
		// zeCommandListImmediateAppendCommandListsExp(list, n, lists, event, n, events)
		ze("zeCommandListImmediateAppendCommandListsExp", "graph", func(f *Function) {
			f.Effect = ExecutesLists
			f.Values = slices.Concat([]Value{Reg(FieldStream, 0), Reg32(FieldCount, 1), Reg(FieldEvent, 3)}, List(FieldList, 2, mostLists))
		}),
		// …WithParameters(list, n, lists, extensions, event, n, events)
		ze("zeCommandListImmediateAppendCommandListsWithParameters", "graph", func(f *Function) {
			f.Effect = ExecutesLists
			f.Values = slices.Concat([]Value{Reg(FieldStream, 0), Reg32(FieldCount, 1), Reg(FieldEvent, 4)}, List(FieldList, 2, mostLists))
		}),
	}),
}

// graphs are captures of an immediate list, as CUDA has them.
var graphs = []Function{
	// zeCommandListBeginGraphCaptureExt(list, extensions)
	ze("zeCommandListBeginGraphCaptureExt", "graph", Changes(BeginsCapture, Reg(FieldStream, 0))),
	// zeCommandListBeginCaptureIntoGraphExt(list, graph, extensions)
	ze("zeCommandListBeginCaptureIntoGraphExt", "graph", Changes(BeginsCapture, Reg(FieldStream, 0))),
	// zeCommandListEndGraphCaptureExt(list, extensions, graph *)
	ze("zeCommandListEndGraphCaptureExt", "graph", Changes(EndsCapture, Reg(FieldStream, 0), Out(FieldGraph, 2))),
	// zeGraphInstantiateExt(graph, extensions, executable *)
	ze("zeGraphInstantiateExt", "graph", Changes(InstantiatesGraph, Reg(FieldGraph, 0), Out(FieldGraphExec, 2))),
	// zeCommandListAppendGraphExt(list, executable, extensions, event, n, events)
	ze("zeCommandListAppendGraphExt", "graph", Changes(LaunchesGraph, Reg(FieldStream, 0), Reg(FieldGraphExec, 1), Reg(FieldEvent, 3))),
	ze("zeGraphDestroyExt", "graph", Changes(DestroysGraph, Reg(FieldGraph, 0))),
	ze("zeExecutableGraphDestroyExt", "graph", Changes(DestroysGraphExec, Reg(FieldGraphExec, 0))),
}

var launches = []Function{
	// zeCommandListAppendLaunchKernel(list, kernel, {x, y, z} *, event, n, events)
	ze("zeCommandListAppendLaunchKernel", "launch", launch(3, groupCounts...)),
	ze("zeCommandListAppendLaunchCooperativeKernel", "launch", launch(3, groupCounts...)),
	// …Indirect(list, kernel, device memory, event, n, events)
	ze("zeCommandListAppendLaunchKernelIndirect", "launch", launch(3)),
	// …WithParameters(list, kernel, {x, y, z} *, extensions, event, n, events)
	ze("zeCommandListAppendLaunchKernelWithParameters", "launch", launch(4, groupCounts...)),
	// …WithArguments(list, kernel, {x, y, z}, block {x, y, z}, arguments, extensions, event, n, events):
	// twelve bytes by value are two registers
	ze("zeCommandListAppendLaunchKernelWithArguments", "launch", launch(8,
		Reg32(FieldGridX, 2), High32(FieldGridY, 2), Reg32(FieldGridZ, 3),
		Reg32(FieldBlockX, 4), High32(FieldBlockY, 4), Reg32(FieldBlockZ, 5))),
	// zeCommandListAppendHostFunction(list, function, data, extensions, event, n, events): called on a thread of the driver
	ze("zeCommandListAppendHostFunction", "callback", Captures(Reg(FieldStream, 0))),
	// zeCommandListAppendLaunchMultipleKernelsIndirect(list, n, kernels, counts, groups, event, n, events):
	// the first of them
	ze("zeCommandListAppendLaunchMultipleKernelsIndirect", "launch", func(f *Function) {
		f.Name = FromKernel
		f.Values = []Value{Reg(FieldStream, 0), Mem(FieldKernel, 2, 0), Arg(FieldEvent, 5)}
	}),
}

var groupCounts = []Value{Mem32(FieldGridX, 2, 0), Mem32(FieldGridY, 2, 4), Mem32(FieldGridZ, 2, 8)}

// launch is a launch whose event is argument n.
func launch(event uint8, more ...Value) func(*Function) {
	return func(f *Function) {
		f.Name = FromKernel
		f.Values = slices.Concat([]Value{Reg(FieldStream, 0), Reg(FieldKernel, 1)}, more, []Value{Arg(FieldEvent, event)})
	}
}

var copies = []Function{
	// zeCommandListAppendMemoryCopy(list, to, from, bytes, event, n, events): which
	// way is the pointers' affair
	ze("zeCommandListAppendMemoryCopy", "copy", command(4, Reg(FieldBytes, 3))),
	// …FromContext(list, to, context, from, bytes, event, n, events)
	ze("zeCommandListAppendMemoryCopyFromContext", "copy", command(5, Reg(FieldBytes, 4))),
	// zeCommandListAppendMemoryFill(list, pointer, pattern, pattern_bytes, bytes, event, n, events)
	ze("zeCommandListAppendMemoryFill", "set", command(5, Reg(FieldBytes, 4))),
	// …WithParameters(…, bytes, extensions, event, n, events)
	ze("zeCommandListAppendMemoryCopyWithParameters", "copy", command(5, Reg(FieldBytes, 3))),
	ze("zeCommandListAppendMemoryFillWithParameters", "set", command(6, Reg(FieldBytes, 4))),
	// …CopyRegion(list, to, region *, pitch, slice, from, region *, pitch, slice, event, n, events)
	ze("zeCommandListAppendMemoryCopyRegion", "copy", command(9,
		Mem32(FieldWidth, 2, 12), Mem32(FieldHeight, 2, 16), Mem32(FieldDepth, 2, 20))),
	// zeCommandListAppendMemoryPrefetch(list, pointer, bytes)
	ze("zeCommandListAppendMemoryPrefetch", "copy", Captures(Reg(FieldStream, 0), Reg(FieldBytes, 2)), ManagedMove),
}

// images move pixels, whose size the calls do not say: no bytes.
var images = []Function{
	ze("zeCommandListAppendImageCopy", "copy", command(3), BetweenDevices),
	ze("zeCommandListAppendImageCopyRegion", "copy", command(5), BetweenDevices),
	ze("zeCommandListAppendImageCopyToMemory", "copy", command(4)),
	ze("zeCommandListAppendImageCopyFromMemory", "copy", command(4)),
	// …Ext(list, to, from, region *, pitch, slice, event, n, events)
	ze("zeCommandListAppendImageCopyToMemoryExt", "copy", command(6)),
	ze("zeCommandListAppendImageCopyFromMemoryExt", "copy", command(6)),
}

// command is a command for the list in argument 0 whose event is argument n.
func command(event uint8, more ...Value) func(*Function) {
	return func(f *Function) {
		f.Values = slices.Concat([]Value{Reg(FieldStream, 0)}, more, []Value{Arg(FieldEvent, event)})
	}
}

// ze is one entry point, which returns its status.
func ze(symbol, category string, with ...func(*Function)) Function {
	return EntryPoint(Function{
		Library: libZeLoader, Label: symbol, Category: category, Runtime: "level_zero", NotReady: notReady,
	}, with)
}
