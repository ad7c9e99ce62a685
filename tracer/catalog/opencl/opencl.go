// Package opencl has the table of OpenCL 1.0 to 3.0, from the ICD loader's exports: the driver
// behind it is called through a table and not probed, so no call is seen twice. The argument lists
// are those of the Khronos headers (cl.h 3.0, 2023-02-06). All are C functions that neither throw
// nor run caller code before they return, but for those that build a program (code.go).
// https://registry.khronos.org/OpenCL/specs/3.0-unified/html/OpenCL_API.html
//
// A handle is a pointer; events, queues and buffers are counted, and a handle comes again once its
// count was 0.
//
// The package is no part of the public API: it may change with any version.
package opencl

import (
	"slices"

	. "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// Groups lists the groups of this table, in the order in which they are shown.
func Groups() []Group {
	return []Group{callGroup, memoryGroup, syncGroup, codeGroup}
}

const libOpenCL = "libOpenCL.so"

// outOfMemory: CL_MEM_OBJECT_ALLOCATION_FAILURE.
const outOfMemory = -4

var callGroup = Group{
	Name:      "opencl",
	Help:      "OpenCL: kernels, copies, sets, maps",
	Tier:      Detail,
	Launches:  true,
	With:      []string{"opencl-code"},
	Functions: slices.Concat(launches, copies, images, maps, sharedMemory),
}

var launches = []Function{
	// clEnqueueNDRangeKernel(queue, kernel, cl_uint dim, const size_t *offset,
	//     const size_t *global, const size_t *local, n, events, event *)
	openCL("clEnqueueNDRangeKernel", "launch", func(f *Function) {
		f.Name = FromKernel
		f.Values = []Value{
			Reg(FieldStream, 0), Reg(FieldKernel, 1), Reg32(FieldDimensions, 2),
			Mem(FieldWorkX, 4, 0), Mem(FieldWorkY, 4, 8), Mem(FieldWorkZ, 4, 16),
			Mem(FieldBlockX, 5, 0), Mem(FieldBlockY, 5, 8), Mem(FieldBlockZ, 5, 16),
			OutArg(FieldEvent, 8),
		}
	}),
	// clEnqueueTask(queue, kernel, n, events, event *)
	openCL("clEnqueueTask", "launch", func(f *Function) {
		f.Name = FromKernel
		f.Values = []Value{Reg(FieldStream, 0), Reg(FieldKernel, 1), OutArg(FieldEvent, 4)}
	}),
	// clEnqueueNativeKernel(queue, function, args, bytes, n, objects, places, n, events, event *):
	// a function of the job's own, which is not looked up
	openCL("clEnqueueNativeKernel", "launch", enqueues(9)),
}

var copies = []Function{
	// clEnqueueReadBuffer(queue, buffer, blocking, offset, bytes, host, n, events, event *)
	openCL("clEnqueueReadBuffer", "copy", enqueues(8, Reg32(FieldBlocking, 2), Reg(FieldBytes, 4)), DeviceToHost),
	openCL("clEnqueueWriteBuffer", "copy", enqueues(8, Reg32(FieldBlocking, 2), Reg(FieldBytes, 4)), HostToDevice),
	// clEnqueueReadBufferRect(queue, buffer, blocking, buffer_origin, host_origin, region,
	//     four pitches, host, n, events, event *)
	openCL("clEnqueueReadBufferRect", "copy", enqueues(13, region(5, Reg32(FieldBlocking, 2))...), DeviceToHost),
	openCL("clEnqueueWriteBufferRect", "copy", enqueues(13, region(5, Reg32(FieldBlocking, 2))...), HostToDevice),
	// clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, bytes, n, events, event *)
	openCL("clEnqueueCopyBuffer", "copy", enqueues(8, Reg(FieldBytes, 5)), BetweenDevices),
	// clEnqueueCopyBufferRect(queue, from, to, from_origin, to_origin, region, four pitches, n, events, event *)
	openCL("clEnqueueCopyBufferRect", "copy", enqueues(12, region(5)...), BetweenDevices),
	// clEnqueueFillBuffer(queue, buffer, pattern, pattern_bytes, offset, bytes, n, events, event *)
	openCL("clEnqueueFillBuffer", "set", enqueues(8, Reg(FieldBytes, 5))),
	// clEnqueueMigrateMemObjects(queue, n, objects, flags, n, events, event *)
	openCL("clEnqueueMigrateMemObjects", "copy", enqueues(6)),
}

// images move pixels, whose size the calls do not say: no bytes.
var images = []Function{
	// clEnqueueReadImage(queue, image, blocking, origin, region, row, slice, host, n, events, event *)
	openCL("clEnqueueReadImage", "copy", enqueues(10, Reg32(FieldBlocking, 2)), DeviceToHost),
	openCL("clEnqueueWriteImage", "copy", enqueues(10, Reg32(FieldBlocking, 2)), HostToDevice),
	// clEnqueueFillImage(queue, image, colour, origin, region, n, events, event *)
	openCL("clEnqueueFillImage", "set", enqueues(7)),
	// clEnqueueCopyImage(queue, from, to, from_origin, to_origin, region, n, events, event *)
	openCL("clEnqueueCopyImage", "copy", enqueues(8), BetweenDevices),
	openCL("clEnqueueCopyImageToBuffer", "copy", enqueues(8), BetweenDevices),
	openCL("clEnqueueCopyBufferToImage", "copy", enqueues(8), BetweenDevices),
}

var maps = []Function{
	// void *clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, bytes, n, events, event *, error *)
	openCLReturns("clEnqueueMapBuffer", "map", FieldTarget, 9, enqueues(8, Reg32(FieldBlocking, 2), Reg(FieldBytes, 5))),
	// void *clEnqueueMapImage(queue, image, blocking, flags, origin, region, row *, slice *, n, events, event *, error *)
	openCLReturns("clEnqueueMapImage", "map", FieldTarget, 11, enqueues(10, Reg32(FieldBlocking, 2))),
	// clEnqueueUnmapMemObject(queue, object, pointer, n, events, event *)
	openCL("clEnqueueUnmapMemObject", "map", enqueues(5)),
}

var sharedMemory = []Function{
	// clEnqueueSVMMemcpy(queue, blocking, to, from, bytes, n, events, event *)
	openCL("clEnqueueSVMMemcpy", "copy", enqueues(7, Reg32(FieldBlocking, 1), Reg(FieldBytes, 4))),
	// clEnqueueSVMMemFill(queue, pointer, pattern, pattern_bytes, bytes, n, events, event *)
	openCL("clEnqueueSVMMemFill", "set", enqueues(7, Reg(FieldBytes, 4))),
	// clEnqueueSVMMap(queue, blocking, flags, pointer, bytes, n, events, event *)
	openCL("clEnqueueSVMMap", "map", enqueues(7, Reg32(FieldBlocking, 1), Reg(FieldBytes, 4))),
	// clEnqueueSVMUnmap(queue, pointer, n, events, event *)
	openCL("clEnqueueSVMUnmap", "map", enqueues(4)),
	// clEnqueueSVMMigrateMem(queue, n, pointers, bytes, flags, n, events, event *)
	openCL("clEnqueueSVMMigrateMem", "copy", enqueues(7)),
}

// openCL is one entry point whose returned cl_int is its status.
func openCL(symbol, category string, with ...func(*Function)) Function {
	return EntryPoint(Function{Library: libOpenCL, Label: symbol, Category: category, Runtime: "opencl"}, with)
}

// openCLReturns is one that returns something, and its status behind an argument.
func openCLReturns(symbol, category string, returns Field, status uint8, with ...func(*Function)) Function {
	f := openCL(symbol, category, with...)
	f.StatusOK, f.Returns = false, returns
	f.Values = append(f.Values, OutArg32(FieldError, status))
	return f
}

// enqueues is a command on the queue in argument 0, whose event the call leaves
// behind an argument.
func enqueues(event uint8, more ...Value) func(*Function) {
	return func(f *Function) {
		f.Values = slices.Concat([]Value{Reg(FieldStream, 0)}, more, []Value{OutArg(FieldEvent, event)})
	}
}

// region is a region of bytes, rows and slices behind an argument.
func region(n uint8, more ...Value) []Value {
	return append(more, Mem(FieldWidth, n, 0), Mem(FieldHeight, n, 8), Mem(FieldDepth, n, 16))
}
