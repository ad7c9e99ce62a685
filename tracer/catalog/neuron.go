package catalog

// AWS Neuron's runtime, libnrt: plain C functions that return an NRT_STATUS and
// neither throw nor call back. The argument lists are those of nrt.h and
// nrt_async.h (aws-neuron-sdk, 2026); no device or library was here to try them.
// https://awsdocs-neuron.readthedocs-hosted.com/en/latest/neuron-runtime/api/index.html
//
// A model is loaded onto cores and stands for them: it is the context here, the
// first of its cores the device. nrt_execute returns when the model has run, so
// that the call bounds its time on the device. Not so once the job has asked to
// be told of asynchronous executions.

const (
	libNRT = "libnrt.so"

	// NRT_RESOURCE
	neuronOutOfMemory = 4
	// NRT_TENSOR_PLACEMENT_HOST
	neuronOnHost = 1
)

var neuronGroup = Group{
	Name:      "neuron",
	Help:      "Neuron: executions, transfers, collectives",
	Tier:      Detail,
	Launches:  true,
	With:      []string{"neuron-code"},
	Functions: concat(neuronExecutions, neuronTransfers, neuronCollectives),
}

var neuronExecutions = []Function{
	// nrt_execute(model, inputs, outputs)
	nrt("nrt_execute", "launch", effect(RunsUntilReturn, Reg(FieldContext, 0))),
	// nrt_execute_repeat(model, inputs, outputs, n)
	nrt("nrt_execute_repeat", "launch", effect(RunsUntilReturn, Reg(FieldContext, 0), Reg32(FieldCount, 3))),
	// nrta_execute_schedule(model, inputs, outputs, queue, errors, sequence *)
	nrt("nrta_execute_schedule", "launch", values(Reg(FieldContext, 0))),
	nrt("nrt_register_async_exec_callback", "context", effect(RunsBeyondReturn)),
}

var neuronTransfers = []Function{
	// nrt_tensor_read(tensor, buffer, offset, bytes)
	nrt("nrt_tensor_read", "copy", effect(RunsUntilReturn, Reg(FieldBytes, 3)), deviceToHost),
	nrt("nrt_tensor_write", "copy", effect(RunsUntilReturn, Reg(FieldBytes, 3)), hostToDevice),
	// nrt_tensor_read_batch(batches, n, unsafe)
	nrt("nrt_tensor_read_batch", "copy", deviceToHost),
	nrt("nrt_tensor_write_batch", "copy", hostToDevice),
	// nrt_tensor_copy(from, offset, to, offset, bytes)
	nrt("nrt_tensor_copy", "copy", effect(RunsUntilReturn, Reg(FieldBytes, 4)), betweenDevices),
	// nrt_tensor_memset(tensor, offset, value, bytes)
	nrt("nrt_tensor_memset", "set", effect(RunsUntilReturn, Reg(FieldBytes, 3))),
	// nrt_memcpy_to_device(to, from, bytes)
	nrt("nrt_memcpy_to_device", "copy", effect(RunsUntilReturn, Reg(FieldBytes, 2)), hostToDevice),
	// nrta_tensor_write(tensor, buffer, offset, bytes, queue, errors, sequence *)
	nrt("nrta_tensor_read", "copy", values(Reg(FieldBytes, 3)), deviceToHost),
	nrt("nrta_tensor_write", "copy", values(Reg(FieldBytes, 3)), hostToDevice),
	// nrta_tensor_copy(from, offset, to, offset, bytes, queue, errors, sequence *)
	nrt("nrta_tensor_copy", "copy", values(Reg(FieldBytes, 4)), betweenDevices),
}

var neuronCollectives = []Function{
	// nrt_build_global_comm(core, rank, ranks)
	nrt("nrt_build_global_comm", "init", neuronRank(0, 1, 2), collective),
	// nrt_barrier(core, rank, ranks)
	nrt("nrt_barrier", "barrier", neuronRank(0, 1, 2), collective),
	// nrt_all_gather(core, rank, ranks, bytes, input, output)
	nrt("nrt_all_gather", "allgather", neuronRank(0, 1, 2, Reg32(FieldBytes, 3)), collective),
	nrt("nrta_cc_prepare", "issue", collective),
	nrt("nrta_cc_schedule", "issue", collective),
	// nrt_async_drain_queued_execs(core)
	nrt("nrt_async_drain_queued_execs", "sync", values(Int32(FieldDeviceID, 0))),
}

func collective(f *Function) { f.Layer = "collective" }

// neuronRank is a call of one rank: the arguments with its core, rank and how many there are.
func neuronRank(core, rank, ranks uint8, more ...Value) func(*Function) {
	return values(append([]Value{Int32(FieldDeviceID, core), Reg32(FieldRank, rank), Reg32(FieldRanks, ranks)}, more...)...)
}

var neuronCodeGroup = Group{
	Name: "neuron-code",
	Help: "Neuron: models, and the cores they are loaded onto",
	Tier: Anchor,
	Functions: []Function{
		nrt("nrt_init", "context"),
		nrt("nrt_close", "context", func(f *Function) { f.StatusOK = false }),
		// nrt_load(neff, bytes, core, cores, model *)
		nrt("nrt_load", "module", effect(NamesContext, Reg(FieldBytes, 1), Int32(FieldDeviceID, 2), OutArg(FieldContext, 4))),
		// nrt_load_collectives(neff, bytes, core, cores, rank, ranks, model *)
		nrt("nrt_load_collectives", "module", effect(NamesContext, Reg(FieldBytes, 1), Int32(FieldDeviceID, 2), OutArg(FieldContext, 6))),
		nrt("nrt_unload", "module", effect(DestroysContext, Reg(FieldContext, 0))),
	},
}

var neuronMemoryGroup = Group{
	Name: "neuron-memory",
	Help: "Neuron: tensors",
	Tier: Anchor,
	With: []string{"neuron-code"},
	Functions: []Function{
		// nrt_tensor_allocate(placement, core, bytes, name, tensor *)
		nrt("nrt_tensor_allocate", "alloc", func(f *Function) {
			f.OutOfMemory = neuronOutOfMemory
			f.Values = []Value{Reg32(FieldFlags, 0), Int32(FieldDeviceID, 1), Reg(FieldBytes, 2), OutArg(FieldAddress, 4)}
			f.Memory = &Memory{Space: "device", Level: "driver", Action: "alloc", Spaces: []FlagSpace{{neuronOnHost, "host"}}}
		}),
		// void nrt_tensor_free(tensor **)
		nrt("nrt_tensor_free", "free", changesMemory("free", "device", Mem(FieldAddress, 0, 0)), func(f *Function) { f.StatusOK = false }),
		// Parts of another tensor, or names for memory of the job's: nothing is allocated.
		// nrt_tensor_allocate_slice(source, offset, bytes, name, tensor *)
		nrt("nrt_tensor_allocate_slice", "alloc", values(Reg(FieldBytes, 2))),
		nrt("nrt_tensor_allocate_empty", "alloc"),
		// nrt_tensor_attach_buffer(tensor, buffer, bytes)
		nrt("nrt_tensor_attach_buffer", "alloc", values(Reg(FieldBytes, 2))),
	},
}

// nrt is one entry point, which returns its status.
func nrt(symbol, category string, with ...func(*Function)) Function {
	f := Function{
		Library: libNRT, Symbol: symbol, Exact: true,
		Layer: "runtime", Category: category, Runtime: "neuron", Label: symbol,
		Action: Span, End: Return, StatusOK: true,
		Since: "nrt.h and nrt_async.h of aws-neuron-sdk: the library itself is in no registry",
	}
	for _, set := range with {
		set(&f)
	}
	return f
}
