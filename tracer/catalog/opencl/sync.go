package opencl

import (
	"slices"

	. "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// Waits and events of OpenCL. The event of a command stands for that command
// alone: a queue may run out of order.

const (
	// CL_EVENT_COMMAND_EXECUTION_STATUS; 0 is CL_COMPLETE, less an error, more is not yet.
	executionStatus = 0x11D3
)

// waitList is how many events of a wait are looked at.
const waitList = 8

var syncGroup = Group{
	Name:   "opencl-sync",
	Anchor: true,
	Help:   "OpenCL: waits, events, and what they tell of the device's time",
	Tier:   Anchor,
	With:   []string{"opencl-code"},
	Functions: []Function{
		openCL("clFinish", "sync", Changes(WaitsStream, Reg(FieldStream, 0))),
		openCL("clFlush", "event", Captures(Reg(FieldStream, 0))),
		// clWaitForEvents(n, events)
		openCL("clWaitForEvents", "sync", Changes(WaitsEvent,
			slices.Concat([]Value{Reg32(FieldCount, 0)}, List(FieldEvent, 1, waitList))...)),
		// clEnqueueMarkerWithWaitList(queue, n, events, event *): without a list,
		// behind all that the queue has
		openCL("clEnqueueMarkerWithWaitList", "event", marks),
		openCL("clEnqueueBarrierWithWaitList", "event", marks),
		// clEnqueueMarker(queue, event *)
		openCL("clEnqueueMarker", "event", Changes(RecordsEvent, Reg(FieldStream, 0), Out(FieldEvent, 1))),
		openCL("clEnqueueBarrier", "event", Captures(Reg(FieldStream, 0))),
		openCL("clEnqueueWaitForEvents", "event", Captures(Reg(FieldStream, 0), Reg32(FieldCount, 1))),
		// clGetEventInfo(event, parameter, bytes, value *, bytes *)
		openCL("clGetEventInfo", "event", func(f *Function) {
			f.Effect, f.Parameter = QueriesEvent, executionStatus
			f.Values = []Value{Reg(FieldEvent, 0), Reg32(FieldParameter, 1), Out32(FieldAnswer, 3)}
		}),
		// clGetEventProfilingInfo(event, parameter, bytes, cl_ulong *, bytes *)
		openCL("clGetEventProfilingInfo", "event", Changes(TellsTime,
			Reg(FieldEvent, 0), Reg32(FieldParameter, 1), Out(FieldTime, 3))),
		openCLReturns("clCreateUserEvent", "event", FieldEvent, 1),
	},
}

func marks(f *Function) {
	f.Effect = RecordsEvent
	f.Values = []Value{Reg(FieldStream, 0), Reg32(FieldCount, 1), Out(FieldEvent, 3)}
}
