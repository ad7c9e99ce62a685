// Package cuda has the table of the CUDA driver, libcuda. Every way to a kernel ends here: the
// runtime library (shared or linked into the program), cuBLAS, NCCL, Triton, XLA. They get its
// functions from cuGetProcAddress, which hands out the exported thunks themselves: 625 of the 628
// exported addresses of 550.163.01 stand once in its table (read from the file). So a probe on the
// export sees all of them.
//
// The names, their variants and their argument lists are those of cuda.h 12.8; the offsets in
// structs are those that gcc gives them on x86-64 and arm64. _v2 and later are new layouts (64-bit
// sizes since 3.2), _ptds and _ptsz the same function for callers that were compiled for a default
// stream per thread. None throws, none runs caller code before it returns: cuLaunchHostFunc and
// cuStreamAddCallback call back on a thread of the driver.
//
// The package is no part of the public API: it may change with any version.
package cuda

import (
	"slices"

	. "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// Groups lists the groups of this table, in the order in which they are shown.
func Groups() []Group {
	return []Group{callGroup, memoryGroup, syncGroup, codeGroup, stubsGroup}
}

const (
	libcuda = "libcuda.so libcuda-"

	outOfMemory = 2
	notReady    = 600
)

// CUDA_MEMCPY2D: where its members are, in its two layouts.
var copy2D = map[string][]Value{
	"": {
		Mem32(FieldSourceKind, 0, 8), Mem32(FieldTargetKind, 0, 52),
		Mem32(FieldWidth, 0, 84), Mem32(FieldHeight, 0, 88),
	},
	"_v2": {
		Mem32(FieldSourceKind, 0, 16), Mem32(FieldTargetKind, 0, 72),
		Mem(FieldWidth, 0, 112), Mem(FieldHeight, 0, 120),
	},
}

// CUDA_MEMCPY3D and, with the contexts in its reserved words, CUDA_MEMCPY3D_PEER.
var copy3D = map[string][]Value{
	"": {
		Mem32(FieldSourceKind, 0, 16), Mem32(FieldTargetKind, 0, 80),
		Mem32(FieldWidth, 0, 128), Mem32(FieldHeight, 0, 132), Mem32(FieldDepth, 0, 136),
	},
	"_v2": {
		Mem32(FieldSourceKind, 0, 32), Mem32(FieldTargetKind, 0, 120),
		Mem(FieldWidth, 0, 176), Mem(FieldHeight, 0, 184), Mem(FieldDepth, 0, 192),
	},
}

var callGroup = Group{
	Name:     "cuda",
	Help:     "CUDA driver: kernel launches, graph launches, copies, sets",
	Tier:     Detail,
	Launches: true,
	With:     []string{"cuda-code"},
	Functions: slices.Concat(
		launches,
		copies("cuMemcpyHtoD", "host_to_device"),
		copies("cuMemcpyDtoH", "device_to_host"),
		copies("cuMemcpyDtoD", "device_to_device"),
		oddCopies,
		sets,
	),
}

var launches = slices.Concat(
	// CUresult cuLaunchKernel(f, gridX, gridY, gridZ, blockX, blockY, | blockZ,
	//     sharedMemBytes, stream, kernelParams, extra)
	cuda("cuLaunchKernel", "launch", "|_ptsz", LaunchKernel),
	cuda("cuLaunchCooperativeKernel", "launch", "|_ptsz", LaunchKernel),
	// cuLaunchKernelEx(const CUlaunchConfig *, f, kernelParams, extra)
	cuda("cuLaunchKernelEx", "launch", "|_ptsz", LaunchKernelEx),
	// cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, n, flags): the first of them
	cuda("cuLaunchCooperativeKernelMultiDevice", "launch", "", func(f *Function) {
		f.Name = FromKernel
		f.Values = []Value{
			Mem(FieldKernel, 0, 0), Mem32(FieldGridX, 0, 8), Mem32(FieldGridY, 0, 12), Mem32(FieldGridZ, 0, 16),
			Mem32(FieldBlockX, 0, 20), Mem32(FieldBlockY, 0, 24), Mem32(FieldBlockZ, 0, 28),
			Mem32(FieldSharedBytes, 0, 32), Mem(FieldStream, 0, 40),
		}
	}),
	// Before CUDA 4: the block and the arguments were set by calls of their own.
	cuda("cuLaunch", "launch", "", func(f *Function) {
		f.Name, f.Values = FromKernel, []Value{Reg(FieldKernel, 0)}
	}),
	cuda("cuLaunchGrid", "launch", "", func(f *Function) {
		f.Name = FromKernel
		f.Values = []Value{Reg(FieldKernel, 0), Reg32(FieldGridX, 1), Reg32(FieldGridY, 2)}
	}),
	cuda("cuLaunchGridAsync", "launch", "", func(f *Function) {
		f.Name = FromKernel
		f.Values = []Value{Reg(FieldKernel, 0), Reg32(FieldGridX, 1), Reg32(FieldGridY, 2), Reg(FieldStream, 3)}
	}),
	cuda("cuLaunchHostFunc", "callback", "|_ptsz", Captures(Reg(FieldStream, 0))),
	cuda("cuStreamAddCallback", "callback", "|_ptsz", Captures(Reg(FieldStream, 0))),
	cuda("cuGraphLaunch", "graph", "|_ptsz", func(f *Function) {
		f.Effect, f.Values = LaunchesGraph, []Value{Reg(FieldGraphExec, 0), Reg(FieldStream, 1)}
	}),
)

// LaunchKernel is the layout of cuLaunchKernel.
func LaunchKernel(f *Function) {
	f.Name = FromKernel
	f.Values = []Value{
		Reg(FieldKernel, 0), Reg32(FieldGridX, 1), Reg32(FieldGridY, 2), Reg32(FieldGridZ, 3),
		Reg32(FieldBlockX, 4), Reg32(FieldBlockY, 5), Arg32(FieldBlockZ, 6), Arg32(FieldSharedBytes, 7),
		Arg(FieldStream, 8),
	}
}

// LaunchKernelEx is the layout of cuLaunchKernelEx: CUlaunchConfig behind argument 0,
// the kernel in the next.
func LaunchKernelEx(f *Function) {
	f.Name = FromKernel
	f.Values = append([]Value{Reg(FieldKernel, 1)}, ConfigValues...)
}

// ConfigValues are those of a CUlaunchConfig behind argument 0.
var ConfigValues = []Value{
	Mem32(FieldGridX, 0, 0), Mem32(FieldGridY, 0, 4), Mem32(FieldGridZ, 0, 8),
	Mem32(FieldBlockX, 0, 12), Mem32(FieldBlockY, 0, 16), Mem32(FieldBlockZ, 0, 20),
	Mem32(FieldSharedBytes, 0, 24), Mem(FieldStream, 0, 32),
}

// copies are the plain copies of one direction: (dst, src, bytes[, stream]).
// The first layout had 32-bit addresses and sizes.
func copies(name, direction string) []Function {
	toward := func(f *Function) { f.Direction = direction }
	return slices.Concat(
		cuda(name, "copy", "", Captures(Reg32(FieldBytes, 2)), toward),
		cuda(name, "copy", "_v2|_v2_ptds", Captures(Reg(FieldBytes, 2)), toward),
		cuda(name+"Async", "copy", "", Captures(Reg32(FieldBytes, 2), Reg(FieldStream, 3)), toward),
		cuda(name+"Async", "copy", "_v2|_v2_ptsz", Captures(Reg(FieldBytes, 2), Reg(FieldStream, 3)), toward),
	)
}

var oddCopies = slices.Concat(
	cuda("cuMemcpy", "copy", "|_ptds", Captures(Reg(FieldBytes, 2))),
	cuda("cuMemcpyAsync", "copy", "|_ptsz", Captures(Reg(FieldBytes, 2), Reg(FieldStream, 3))),
	// cuMemcpyPeer(dst, dstContext, src, srcContext, bytes[, stream])
	cuda("cuMemcpyPeer", "copy", "|_ptds", Captures(Reg(FieldBytes, 4)), BetweenDevices),
	cuda("cuMemcpyPeerAsync", "copy", "|_ptsz", Captures(Reg(FieldBytes, 4), Reg(FieldStream, 5)), BetweenDevices),
	arrayCopies("cuMemcpyHtoA", "host_to_device", 3),
	arrayCopies("cuMemcpyAtoH", "device_to_host", 3),
	arrayCopies("cuMemcpyDtoA", "device_to_device", 3),
	arrayCopies("cuMemcpyAtoD", "device_to_device", 3),
	arrayCopies("cuMemcpyAtoA", "device_to_device", 4),
	cuda("cuMemcpyHtoAAsync", "copy", "", Captures(Reg32(FieldBytes, 3), Reg(FieldStream, 4)), HostToDevice),
	cuda("cuMemcpyAtoHAsync", "copy", "", Captures(Reg32(FieldBytes, 3), Reg(FieldStream, 4)), DeviceToHost),
	cuda("cuMemcpyHtoAAsync", "copy", "_v2|_v2_ptsz", Captures(Reg(FieldBytes, 3), Reg(FieldStream, 4)), HostToDevice),
	cuda("cuMemcpyAtoHAsync", "copy", "_v2|_v2_ptsz", Captures(Reg(FieldBytes, 3), Reg(FieldStream, 4)), DeviceToHost),
	structCopies("cuMemcpy2D", copy2D),
	structCopies("cuMemcpy3D", copy3D),
	cuda("cuMemcpy2DUnaligned", "copy", "", Captures(copy2D[""]...)),
	cuda("cuMemcpy2DUnaligned", "copy", "_v2|_v2_ptds", Captures(copy2D["_v2"]...)),
	cuda("cuMemcpy3DPeer", "copy", "|_ptds", Captures(copy3D["_v2"]...)),
	cuda("cuMemcpy3DPeerAsync", "copy", "|_ptsz", Captures(append([]Value{Reg(FieldStream, 1)}, copy3D["_v2"]...)...)),
	// cuMemPrefetchAsync(ptr, bytes, device, stream), and with a CUmemLocation
	// {type, id} by value and flags since 12.2.
	cuda("cuMemPrefetchAsync", "copy", "|_ptsz", Captures(Reg(FieldBytes, 1), Int32(FieldDeviceID, 2), Reg(FieldStream, 3)), ManagedMove),
	cuda("cuMemPrefetchAsync", "copy", "_v2|_v2_ptsz", Captures(Reg(FieldBytes, 1), High32(FieldDeviceID, 2), Reg(FieldStream, 4)),
		ManagedMove),
)

func arrayCopies(name, direction string, bytes uint8) []Function {
	toward := func(f *Function) { f.Direction = direction }
	return slices.Concat(
		cuda(name, "copy", "", Captures(Reg32(FieldBytes, bytes)), toward),
		cuda(name, "copy", "_v2|_v2_ptds", Captures(Reg(FieldBytes, bytes)), toward),
	)
}

func structCopies(name string, layouts map[string][]Value) []Function {
	onStream := func(layout string) []Value {
		return append([]Value{Reg(FieldStream, 1)}, layouts[layout]...)
	}
	return slices.Concat(
		cuda(name, "copy", "", Captures(layouts[""]...)),
		cuda(name, "copy", "_v2|_v2_ptds", Captures(layouts["_v2"]...)),
		cuda(name+"Async", "copy", "", Captures(onStream("")...)),
		cuda(name+"Async", "copy", "_v2|_v2_ptsz", Captures(onStream("_v2")...)),
	)
}

var sets = slices.Concat(set("D8", 1), set("D16", 2), set("D32", 4))

// set are the sets of one element size: (dst, value, n[, stream]) and
// (dst, pitch, value, width, height[, stream]).
func set(element string, size uint8) []Function {
	return slices.Concat(
		cuda("cuMemset"+element, "set", "", Captures(Scaled(Reg32(FieldBytes, 2), size))),
		cuda("cuMemset"+element, "set", "_v2|_v2_ptds", Captures(Scaled(Reg(FieldBytes, 2), size))),
		cuda("cuMemset"+element+"Async", "set", "|_ptsz", Captures(Scaled(Reg(FieldBytes, 2), size), Reg(FieldStream, 3))),
		cuda("cuMemsetD2"+element, "set", "", Captures(Scaled(Reg32(FieldWidth, 3), size), Reg32(FieldHeight, 4))),
		cuda("cuMemsetD2"+element, "set", "_v2|_v2_ptds", Captures(Scaled(Reg(FieldWidth, 3), size), Reg(FieldHeight, 4))),
		cuda("cuMemsetD2"+element+"Async", "set", "|_ptsz", Captures(Scaled(Reg(FieldWidth, 3), size), Reg(FieldHeight, 4), Reg(FieldStream, 5))),
	)
}

// cuda is one entry point of libcuda in some of its variants.
func cuda(name, category, variants string, with ...func(*Function)) []Function {
	return EntryPoints(Function{
		Library: libcuda, Label: name, Category: category, Runtime: "cuda", NotReady: notReady,
	}, variants, with)
}
