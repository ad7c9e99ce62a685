// Package neuron has the table of AWS Neuron's runtime, libnrt: plain C functions that return an
// NRT_STATUS and neither throw nor call back. The argument lists are those of nrt.h, nrt_async.h,
// nrt_profile.h and nrt_sys_trace.h (aws-neuron-sdk, 2026); no device or library was here to try them.
// https://awsdocs-neuron.readthedocs-hosted.com/en/latest/neuron-runtime/api/index.html
//
// A model is loaded onto cores and stands for them: it is the context here, the first of its cores
// the device. nrt_execute returns when the model has run, so that the call bounds its time on the
// device. Not so once the job has asked for notices of asynchronous executions.
//
// The package is no part of the public API: it may change with any version.
package neuron

import (
	"slices"

	. "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// Groups lists the groups of this table, in the order in which they are shown.
func Groups() []Group {
	return []Group{executeGroup, transferGroup, memoryGroup, codeGroup, profileGroup}
}

const (
	libNRT = "libnrt.so"

	// NRT_RESOURCE
	outOfMemory = 4
	// NRT_TENSOR_PLACEMENT_HOST
	onHost = 1
)

// executeGroup is what a loop's steps are found by.
var executeGroup = Group{
	Name:      "neuron-execute",
	Anchor:    true,
	Help:      "Neuron: executions, collectives",
	Tier:      Anchor,
	Launches:  true,
	With:      []string{"neuron-code"},
	Functions: slices.Concat(executions, collectives),
}

var transferGroup = Group{
	Name:      "neuron",
	Help:      "Neuron: transfers, and what asynchronous requests have completed",
	Tier:      Detail,
	Launches:  true,
	With:      []string{"neuron-code", "neuron-execute"},
	Functions: slices.Concat(transfers, completions),
}

var executions = []Function{
	// nrt_execute(model, inputs, outputs)
	nrt("nrt_execute", "launch", Changes(RunsUntilReturn, Reg(FieldContext, 0))),
	// nrt_execute_repeat(model, inputs, outputs, n)
	nrt("nrt_execute_repeat", "launch", Changes(RunsUntilReturn, Reg(FieldContext, 0), Reg32(FieldCount, 3))),
	// nrta_execute_schedule(model, inputs, outputs, queue, errors, sequence *)
	nrt("nrta_execute_schedule", "launch", Captures(Reg(FieldContext, 0))),
	nrt("nrt_register_async_exec_callback", "context", Changes(RunsBeyondReturn)),
}

var transfers = []Function{
	// nrt_tensor_read(tensor, buffer, offset, bytes)
	nrt("nrt_tensor_read", "copy", Changes(RunsUntilReturn, Reg(FieldBytes, 3)), DeviceToHost),
	nrt("nrt_tensor_write", "copy", Changes(RunsUntilReturn, Reg(FieldBytes, 3)), HostToDevice),
	// nrt_tensor_read_batch(batches, n, unsafe)
	nrt("nrt_tensor_read_batch", "copy", DeviceToHost),
	nrt("nrt_tensor_write_batch", "copy", HostToDevice),
	// nrt_tensor_copy(from, offset, to, offset, bytes)
	nrt("nrt_tensor_copy", "copy", Changes(RunsUntilReturn, Reg(FieldBytes, 4)), BetweenDevices),
	// nrt_tensor_memset(tensor, offset, value, bytes)
	nrt("nrt_tensor_memset", "set", Changes(RunsUntilReturn, Reg(FieldBytes, 3))),
	// nrt_memcpy_to_device(to, from, bytes)
	nrt("nrt_memcpy_to_device", "copy", Changes(RunsUntilReturn, Reg(FieldBytes, 2)), HostToDevice),
	// nrta_tensor_write(tensor, buffer, offset, bytes, queue, errors, sequence *)
	nrt("nrta_tensor_read", "copy", Captures(Reg(FieldBytes, 3)), DeviceToHost),
	nrt("nrta_tensor_write", "copy", Captures(Reg(FieldBytes, 3)), HostToDevice),
	// nrta_tensor_copy(from, offset, to, offset, bytes, queue, errors, sequence *)
	nrt("nrta_tensor_copy", "copy", Captures(Reg(FieldBytes, 4)), BetweenDevices),
}

// completions are asked for again and again until what was scheduled is done.
var completions = []Function{
	// nrta_is_completed(sequence, done *)
	nrt("nrta_is_completed", "event"),
	// nrta_get_sequence(core, unit, queue, sequence *)
	nrt("nrta_get_sequence", "event", Captures(Int32(FieldDeviceID, 0))),
	// nrta_get_completion_handle(sequence, file descriptor *)
	nrt("nrta_get_completion_handle", "event"),
}

var collectives = []Function{
	// nrt_build_global_comm(core, rank, ranks), and nrt_cc_global_comm_init for
	// collectives that the host drives
	nrt("nrt_build_global_comm", "init", ofRank(0, 1, 2), collective),
	nrt("nrt_cc_global_comm_init", "init", ofRank(0, 1, 2), collective),
	// nrt_barrier(core, rank, ranks)
	nrt("nrt_barrier", "barrier", ofRank(0, 1, 2), collective),
	// nrt_all_gather(core, rank, ranks, bytes, input, output)
	nrt("nrt_all_gather", "allgather", ofRank(0, 1, 2, Reg32(FieldBytes, 3)), collective),
	nrt("nrta_cc_prepare", "issue", collective),
	nrt("nrta_cc_schedule", "issue", collective),
	// nrt_async_drain_queued_execs(core)
	nrt("nrt_async_drain_queued_execs", "sync", Captures(Int32(FieldDeviceID, 0))),
}

func collective(f *Function) { f.Layer = "collective" }

// ofRank is a call of one rank: the arguments with its core, rank and how many there are.
func ofRank(core, rank, ranks uint8, more ...Value) func(*Function) {
	return Captures(append([]Value{Int32(FieldDeviceID, core), Reg32(FieldRank, rank), Reg32(FieldRanks, ranks)}, more...)...)
}

var codeGroup = Group{
	Name:   "neuron-code",
	Anchor: true,
	Help:   "Neuron: models, and the cores they are loaded onto",
	Tier:   Anchor,
	Functions: []Function{
		nrt("nrt_init", "context"),
		nrt("nrt_close", "context", func(f *Function) { f.StatusOK = false }),
		// nrt_load(neff, bytes, core, cores, model *)
		nrt("nrt_load", "module", Changes(NamesContext, Reg(FieldBytes, 1), Int32(FieldDeviceID, 2), OutArg(FieldContext, 4))),
		// nrt_load_collectives(neff, bytes, core, cores, rank, ranks, model *)
		nrt("nrt_load_collectives", "module", Changes(NamesContext, Reg(FieldBytes, 1), Int32(FieldDeviceID, 2), OutArg(FieldContext, 6))),
		nrt("nrt_unload", "module", Changes(DestroysContext, Reg(FieldContext, 0))),
	},
}

var memoryGroup = Group{
	Name:   "neuron-memory",
	Anchor: true,
	Help:   "Neuron: tensors",
	Tier:   Anchor,
	With:   []string{"neuron-code"},
	Functions: []Function{
		// nrt_tensor_allocate(placement, core, bytes, name, tensor *)
		nrt("nrt_tensor_allocate", "alloc", func(f *Function) {
			f.OutOfMemory = outOfMemory
			f.Values = []Value{Reg32(FieldFlags, 0), Int32(FieldDeviceID, 1), Reg(FieldBytes, 2), OutArg(FieldAddress, 4)}
			f.Memory = &Memory{Space: "device", Level: "driver", Action: "alloc", Spaces: []FlagSpace{{Flag: onHost, Space: "host"}}}
		}),
		// void nrt_tensor_free(tensor **)
		nrt("nrt_tensor_free", "free", ChangesMemory("free", "device", Mem(FieldAddress, 0, 0)), func(f *Function) { f.StatusOK = false }),
		// Parts of another tensor, or names for memory of the job's: nothing is allocated.
		// nrt_tensor_allocate_slice(source, offset, bytes, name, tensor *)
		nrt("nrt_tensor_allocate_slice", "alloc", Captures(Reg(FieldBytes, 2))),
		nrt("nrt_tensor_allocate_empty", "alloc"),
		// nrt_tensor_attach_buffer(tensor, buffer, bytes)
		nrt("nrt_tensor_attach_buffer", "alloc", Captures(Reg(FieldBytes, 2))),
	},
}

// profileGroup are calls by which a job, or a tool in it, has the runtime trace itself: from then
// on its executions take longer for that. Options are made and freed without a row.
var profileGroup = Group{
	Name:   "neuron-profile",
	Anchor: true,
	Help:   "Neuron: the runtime's own profilers, which make a job slower",
	Tier:   Anchor,
	With:   []string{"neuron-code"},
	Functions: []Function{
		nrt("nrt_inspect_begin", "profile"),
		nrt("nrt_inspect_begin_with_options", "profile"),
		nrt("nrt_inspect_stop", "profile"),
		// nrt_profile_start(model, file)
		nrt("nrt_profile_start", "profile", Captures(Reg(FieldContext, 0))),
		nrt("nrt_profile_stop", "profile"),
		nrt("nrt_profile_continuous_start", "profile"),
		// nrt_profile_continuous_save(core, options)
		nrt("nrt_profile_continuous_save", "profile", Captures(Int32(FieldDeviceID, 0))),
		nrt("nrt_profile_continuous_stop", "profile"),
		nrt("nrt_sys_trace_start", "profile"),
		nrt("nrt_sys_trace_stop", "profile"),
		nrt("nrt_sys_trace_fetch_events", "profile"),
	},
}

// nrt is one entry point, which returns its status.
func nrt(symbol, category string, with ...func(*Function)) Function {
	return EntryPoint(Function{
		Library: libNRT, Label: symbol, Category: category, Runtime: "neuron",
		Since: "the headers of aws-neuron-sdk: the library itself is in no registry",
	}, with)
}
