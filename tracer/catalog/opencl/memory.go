package opencl

import . "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"

// Buffers of OpenCL. The bytes are those asked for; when the driver takes them
// from a device is its own affair. A buffer's address is its handle. Bytes of an
// image follow from its format and are not told.

// CL_MEM_USE_HOST_PTR, CL_MEM_ALLOC_HOST_PTR
var spaces = []FlagSpace{{Flag: 1 << 3, Space: "host"}, {Flag: 1 << 4, Space: "pinned"}}

var memoryGroup = Group{
	Name:   "opencl-memory",
	Anchor: true,
	Help:   "OpenCL: buffers, images, shared virtual memory",
	Tier:   Anchor,
	With:   []string{"opencl-code"},
	Functions: []Function{
		// cl_mem clCreateBuffer(context, flags, bytes, host, error *)
		openCLReturns("clCreateBuffer", "alloc", FieldAddress, 4,
			allocates(Reg(FieldContext, 0), Reg(FieldFlags, 1), Reg(FieldBytes, 2))),
		// cl_mem clCreateBufferWithProperties(context, properties, flags, bytes, host, error *)
		openCLReturns("clCreateBufferWithProperties", "alloc", FieldAddress, 5,
			allocates(Reg(FieldContext, 0), Reg(FieldFlags, 2), Reg(FieldBytes, 3))),
		// cl_mem clCreateSubBuffer(buffer, flags, type, {origin, bytes} *, error *): a part of another
		openCLReturns("clCreateSubBuffer", "alloc", FieldAddress, 4, Captures(Mem(FieldBytes, 3, 8))),
		// cl_mem clCreateImage(context, flags, format, description, host, error *)
		openCLReturns("clCreateImage", "alloc", FieldAddress, 5, allocates(Reg(FieldContext, 0), Reg(FieldFlags, 1))),
		openCLReturns("clCreateImageWithProperties", "alloc", FieldAddress, 6, allocates(Reg(FieldContext, 0), Reg(FieldFlags, 2))),
		openCLReturns("clCreateImage2D", "alloc", FieldAddress, 7, allocates(Reg(FieldContext, 0), Reg(FieldFlags, 1))),
		openCLReturns("clCreateImage3D", "alloc", FieldAddress, 9, allocates(Reg(FieldContext, 0), Reg(FieldFlags, 1))),
		// cl_mem clCreatePipe(context, flags, packet_bytes, packets, properties, error *)
		openCLReturns("clCreatePipe", "alloc", FieldAddress, 5,
			allocates(Reg(FieldContext, 0), Reg(FieldFlags, 1), Reg32(FieldWidth, 2), Reg32(FieldHeight, 3))),
		openCL("clRetainMemObject", "alloc", ChangesMemory("retain", "device", Reg(FieldAddress, 0))),
		openCL("clReleaseMemObject", "free", ChangesMemory("release", "device", Reg(FieldAddress, 0))),
		// void *clSVMAlloc(context, flags, bytes, alignment)
		openCL("clSVMAlloc", "alloc", func(f *Function) {
			f.StatusOK, f.Returns = false, FieldAddress
			f.Memory = &Memory{Space: "managed", Level: "driver", Action: "alloc"}
			f.Values = []Value{Reg(FieldContext, 0), Reg(FieldBytes, 2)}
		}),
		// void clSVMFree(context, pointer)
		openCL("clSVMFree", "free", ChangesMemory("free", "managed", Reg(FieldAddress, 1)), func(f *Function) { f.StatusOK = false }),
		// clEnqueueSVMFree(queue, n, pointers, callback, data, n, events, event *)
		openCL("clEnqueueSVMFree", "free", Captures(Reg(FieldStream, 0), Reg32(FieldCount, 1))),
	},
}

func allocates(v ...Value) func(*Function) {
	return func(f *Function) {
		f.Values, f.OutOfMemory = v, outOfMemory
		f.Memory = &Memory{Space: "device", Level: "driver", Action: "alloc", Spaces: spaces}
	}
}
