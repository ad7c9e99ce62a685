package opencl

import (
	"slices"

	. "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// Programs, kernels, devices, contexts and queues of OpenCL: few calls, which
// say what the handles of the others are.

const (
	// CL_KERNEL_FUNCTION_NAME
	functionName = 0x1190
	// CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
	outOfOrder = 1
)

var codeGroup = Group{
	Name:      "opencl-code",
	Anchor:    true,
	Help:      "OpenCL: programs, kernels, contexts, queues",
	Tier:      Anchor,
	Functions: slices.Concat(programs, kernels, places),
}

// programs: these may call the caller back before they return, and what
// that does is not known. So no return probe.
var programs = []Function{
	openCL("clBuildProgram", "module", callsBack),
	openCL("clCompileProgram", "module", callsBack),
	openCL("clLinkProgram", "module", callsBack),
	// cl_program clCreateProgramWithSource(context, n, strings, lengths, error *)
	openCLReturns("clCreateProgramWithSource", "module", FieldModule, 4),
	openCLReturns("clCreateProgramWithBinary", "module", FieldModule, 6),
	openCLReturns("clCreateProgramWithIL", "module", FieldModule, 3),
	openCLReturns("clCreateProgramWithBuiltInKernels", "module", FieldModule, 4),
	openCL("clReleaseProgram", "module"),
}

func callsBack(f *Function) { f.End, f.StatusOK = ExitSites, false }

var kernels = []Function{
	// cl_kernel clCreateKernel(program, const char *name, error *)
	openCLReturns("clCreateKernel", "module", FieldHandle, 2, func(f *Function) {
		f.Effect, f.Values = NamesKernel, []Value{Reg(FieldModule, 0)}
		f.Text, f.TextArg = CStringLong, 1
	}),
	// clCreateKernelsInProgram(program, n, kernels, n *): no names. Who made them
	// asks for those, with the next.
	openCL("clCreateKernelsInProgram", "module"),
	// clGetKernelInfo(kernel, parameter, bytes, value, bytes *)
	openCL("clGetKernelInfo", "module", func(f *Function) {
		f.Effect, f.Parameter = NamesKernel, functionName
		f.Values = []Value{Reg(FieldHandle, 0), Reg32(FieldParameter, 1), Reg(FieldNone, 3)}
		f.Text, f.TextArg = CStringOut, 2
	}),
	// cl_kernel clCloneKernel(kernel, error *)
	openCLReturns("clCloneKernel", "module", FieldHandle, 1, func(f *Function) {
		f.Effect, f.Values = LinksKernel, []Value{Reg(FieldKernel, 0)}
	}),
}

var places = []Function{
	// clGetDeviceIDs(platform, type, n, devices, n *)
	openCL("clGetDeviceIDs", "context", func(f *Function) {
		f.Effect = NumbersDevices
		f.Values = slices.Concat([]Value{Reg32(FieldCount, 2), Out32(FieldSerial, 4)}, OutList(FieldDeviceHandle, 3, 8))
	}),
	// cl_context clCreateContext(properties, n, devices, callback, data, error *)
	openCLReturns("clCreateContext", "context", FieldContext, 5, func(f *Function) {
		f.Effect = NamesContext
		f.Values = []Value{Reg32(FieldCount, 1), Mem(FieldDeviceHandle, 2, 0)}
	}),
	openCLReturns("clCreateContextFromType", "context", FieldContext, 4),
	openCL("clReleaseContext", "context"),
	// cl_command_queue clCreateCommandQueue(context, device, properties, error *)
	openCLReturns("clCreateCommandQueue", "stream", FieldStream, 3, func(f *Function) {
		f.Effect, f.Parameter = OrdersStream, outOfOrder
		f.Values = []Value{Reg(FieldContext, 0), Reg(FieldDeviceHandle, 1), Reg(FieldFlags, 2)}
	}),
	// …WithProperties(context, device, properties, error *): a list of keys and
	// values, which may come in any order. Null is a queue in order; of another,
	// the first key that is CL_QUEUE_PROPERTIES tells.
	openCLReturns("clCreateCommandQueueWithProperties", "stream", FieldStream, 3, func(f *Function) {
		f.Effect, f.Parameter = OrdersStream, outOfOrder
		f.Values = []Value{
			Reg(FieldContext, 0), Reg(FieldDeviceHandle, 1), Reg(FieldList, 2),
			Mem(FieldParameter, 2, 0), Mem(FieldAnswer, 2, 8),
		}
	}),
	openCL("clReleaseCommandQueue", "stream", Captures(Reg(FieldStream, 0))),
}
