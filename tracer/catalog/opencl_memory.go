package catalog

// Buffers of OpenCL. The bytes are those asked for; when the driver takes them
// from a device is its own affair. A buffer's address is its handle. Bytes of an
// image follow from its format and are not told.

// CL_MEM_USE_HOST_PTR, CL_MEM_ALLOC_HOST_PTR
var openCLSpaces = []FlagSpace{{1 << 3, "host"}, {1 << 4, "pinned"}}

var openCLMemoryGroup = Group{
	Name: "opencl-memory",
	Help: "OpenCL: buffers, images, shared virtual memory",
	Tier: Anchor,
	With: []string{"opencl-code"},
	Functions: []Function{
		// cl_mem clCreateBuffer(context, flags, bytes, host, error *)
		openCLReturns("clCreateBuffer", "alloc", FieldAddress, 4,
			openCLAllocates(Reg(FieldContext, 0), Reg(FieldFlags, 1), Reg(FieldBytes, 2))),
		// cl_mem clCreateBufferWithProperties(context, properties, flags, bytes, host, error *)
		openCLReturns("clCreateBufferWithProperties", "alloc", FieldAddress, 5,
			openCLAllocates(Reg(FieldContext, 0), Reg(FieldFlags, 2), Reg(FieldBytes, 3))),
		// cl_mem clCreateSubBuffer(buffer, flags, type, {origin, bytes} *, error *): a part of another
		openCLReturns("clCreateSubBuffer", "alloc", FieldAddress, 4, values(Mem(FieldBytes, 3, 8))),
		// cl_mem clCreateImage(context, flags, format, description, host, error *)
		openCLReturns("clCreateImage", "alloc", FieldAddress, 5, openCLAllocates(Reg(FieldContext, 0), Reg(FieldFlags, 1))),
		openCLReturns("clCreateImageWithProperties", "alloc", FieldAddress, 6, openCLAllocates(Reg(FieldContext, 0), Reg(FieldFlags, 2))),
		openCLReturns("clCreateImage2D", "alloc", FieldAddress, 7, openCLAllocates(Reg(FieldContext, 0), Reg(FieldFlags, 1))),
		openCLReturns("clCreateImage3D", "alloc", FieldAddress, 9, openCLAllocates(Reg(FieldContext, 0), Reg(FieldFlags, 1))),
		// cl_mem clCreatePipe(context, flags, packet_bytes, packets, properties, error *)
		openCLReturns("clCreatePipe", "alloc", FieldAddress, 5,
			openCLAllocates(Reg(FieldContext, 0), Reg(FieldFlags, 1), Reg32(FieldWidth, 2), Reg32(FieldHeight, 3))),
		openCL("clRetainMemObject", "alloc", changesMemory("retain", "device", Reg(FieldAddress, 0))),
		openCL("clReleaseMemObject", "free", changesMemory("release", "device", Reg(FieldAddress, 0))),
		// void *clSVMAlloc(context, flags, bytes, alignment)
		openCL("clSVMAlloc", "alloc", func(f *Function) {
			f.StatusOK, f.Returns = false, FieldAddress
			f.Memory = &Memory{Space: "managed", Level: "driver", Action: "alloc"}
			f.Values = []Value{Reg(FieldContext, 0), Reg(FieldBytes, 2)}
		}),
		// void clSVMFree(context, pointer)
		openCL("clSVMFree", "free", changesMemory("free", "managed", Reg(FieldAddress, 1)), func(f *Function) { f.StatusOK = false }),
		// clEnqueueSVMFree(queue, n, pointers, callback, data, n, events, event *)
		openCL("clEnqueueSVMFree", "free", values(Reg(FieldStream, 0), Reg32(FieldCount, 1))),
	},
}

func openCLAllocates(v ...Value) func(*Function) {
	return func(f *Function) {
		f.Values, f.OutOfMemory = v, openCLOutOfMemory
		f.Memory = &Memory{Space: "device", Level: "driver", Action: "alloc", Spaces: openCLSpaces}
	}
}
