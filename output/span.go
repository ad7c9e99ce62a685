package output

import "github.com/ebpfprof/ebpfprof/tracer/event"

// spanTable is the hot one: a million rows a second. Columns that only few
// calls have are rare: they cost nothing in a row group without them.
var spanTable = newTable(table[event.Span]{
	Table: Table{
		Name: "span",
		Row:  "something with a beginning: an operator, a scope, a backward pass, a collective, a call into an accelerator runtime",
		Description: "Durations are elapsed time as the probes saw it, children included. " +
			"Where the budget recorded only slices of the run, scale counts and sums by `weight`.",
	},
	time: func(s *event.Span) int64 { return s.StartNS },
	id:   func(s *event.Span) int64 { return s.ID },
	rare: func(s *event.Span) bool { return s.Detail != nil },
	columns: append([]column[event.Span]{
		{Column: Column{"span_id", BigInt, "", false, 2, "names the span within its session; positive"},
			delta: true, ints: func(s *event.Span) (int64, bool) { return s.ID, true }},
		{Column: Column{"parent_id", BigInt, "", true, 3, "span_id of the innermost span around it on its thread"},
			delta: true, ints: func(s *event.Span) (int64, bool) { return unlessZero(s.ParentID) }},
		{Column: Column{"ts_ns", BigInt, "ns", false, 4, "when it began, since the Unix epoch"},
			delta: true, ints: func(s *event.Span) (int64, bool) { return s.StartNS, true }},
		{Column: Column{"duration_ns", BigInt, "ns", true, 5, "how long it took; an upper bound where end_method is next_entry or status is " +
			"threw; NULL when its end was not seen"},
			delta: true, ints: func(s *event.Span) (int64, bool) { return unlessNegative(s.DurationNS) }},
		{Column: Column{"end_method", Varchar, "", false, 6, "how its end is known: return (a return probe), exit_site (an instruction that " +
			"every normal return passes), next_entry (the next call on its thread), scope_end (the framework closed it), unfinished, imported " +
			"(another tool measured it), instant (a USDT probe: it takes no time)"},
			texts: func(s *event.Span) (string, bool) { return s.End.String(), true }},
		{Column: Column{"pid", Integer, "", false, 7, "process, in the tracer's pid namespace"},
			ints: func(s *event.Span) (int64, bool) { return int64(s.PID), true }},
		{Column: Column{"tid", Integer, "", false, 8, "thread, in the tracer's pid namespace"},
			ints: func(s *event.Span) (int64, bool) { return int64(s.TID), true }},
		{Column: Column{"layer", Varchar, "", false, 9, "scope, op, autograd, runtime, collective, or io: a read or write that took a " +
			"millisecond or longer (category: what of, as io.kind; name: the system call); user: what --probe-symbol and --usdt asked for " +
			"(category function or usdt); in imports also python, os, and device: work on a device as another tool measured it, which has no " +
			"thread (tid 0)"},
			texts: func(s *event.Span) (string, bool) { return s.Call.Layer, true }},
		{Column: Column{"category", Varchar, "", true, 10, "what kind of call within its layer: launch, copy, set, alloc, free, sync, event, " +
			"graph (also work that a capture took in and that has not run), module, context, stream, callback, collective, communicator, forward, " +
			"backward, fused (a kernel that torch.compile generated; of Triton's with the time of its launch, which is a span in it), function (a " +
			"torch.autograd.Function, forward or backward: CompiledFunction is a graph that torch.compile compiled), …"},
			texts: func(s *event.Span) (string, bool) { return unlessEmpty(s.Call.Category) }},
		{Column: Column{"runtime", Varchar, "", true, 11, "the accelerator runtime or collective library that was called: cuda, hip, nccl, " +
			"opencl, level_zero, neuron, pjrt, gloo"},
			texts: func(s *event.Span) (string, bool) { return unlessEmpty(s.Call.Runtime) }},
		{Column: Column{"name", Varchar, "", false, 12, "its name in the framework's or runtime's own words: aten::addmm"},
			texts: func(s *event.Span) (string, bool) { return s.Call.Name, true }},
		{Column: Column{"status", Varchar, "", true, 13, "ok, threw (left by an exception), error (returned an error code) or not_ready (a " +
			"query's answer that work is not through yet); NULL when not known"},
			texts: func(s *event.Span) (string, bool) { return unlessEmpty(s.Status.String()) }},
		{Column: Column{"weight", Double, "calls", false, 14, "how many calls like it this row stands for: 1 unless only slices of the run " +
			"were recorded"},
			floats: func(s *event.Span) (float64, bool) { return s.Weight, true }},
		{Column: Column{"sequence_number", BigInt, "", true, 15, "autograd sequence number: on a forward operator the last one it took, on a " +
			"backward node its own. On a collective of torch.distributed which one of its group it is, the same on every rank (gloo: the tag of " +
			"its messages, from 0; nccl: as the flight recorder counts, from 1); NULL of a send or receive"},
			delta: true, ints: func(s *event.Span) (int64, bool) { return unlessNegative(s.SequenceNumber) }},
		{Column: Column{"python_stack_id", BigInt, "", true, 70, "the Python code behind it: a row of stack with the Python frames alone, " +
			"innermost first; NULL where no Python is on the thread's stack, or at level anchor"},
			ints: func(s *event.Span) (int64, bool) { return unlessZero(s.PythonStackID) }},
		{Column: Column{"python_stack_source", Varchar, "", true, 71, "whose python_stack_id is: own (taken when the call began), inherited " +
			"(of the call around it), forward (of a backward node: of the operator that it differentiates)"},
			texts: func(s *event.Span) (string, bool) { return unlessEmpty(s.PythonStackSource.String()) }},
		{Column: Column{"slice_id", BigInt, "", true, 80, "the slice it was recorded in; NULL where every call was recorded"},
			ints: func(s *event.Span) (int64, bool) { return unlessZero(s.SliceID) }},
		{Column: Column{"slice_step", Integer, "", true, 81, "in which whole step of that slice, from 1; NULL in a step that the slice cut"},
			ints: func(s *event.Span) (int64, bool) { return unlessZero(int64(s.SliceStep)) }},
	}, spanDetailColumns()...),
})

// spanDetailColumns are the columns of event.Detail.
func spanDetailColumns() []column[event.Span] {
	type span = event.Span
	columns := []column[span]{
		{Column: Column{"stack_id", BigInt, "", true, 16, "the call stack at its beginning: a 63-bit hash of the frames, equal across " +
			"processes and hosts"},
			ints: func(s *span) (int64, bool) { return ofInt64(s.Detail.StackID) }},
		{Column: Column{"device_id", Integer, "", true, 17, "the device it was for, as the process numbers them"},
			ints: func(s *span) (int64, bool) { return ofInt32(s.Detail.DeviceID) }},
		{Column: Column{"context", BigInt, "", true, 18, "handle of the runtime's context"},
			ints: func(s *span) (int64, bool) { return ofInt64(s.Detail.Context) }},
		{Column: Column{"stream", BigInt, "", true, 19, "handle of the stream or queue; 0 is the default stream"},
			ints: func(s *span) (int64, bool) { return ofInt64(s.Detail.Stream) }},
		{Column: Column{"correlation_id", BigInt, "", true, 20, "joins captured work with the graph launches that run it: span_id of the call " +
			"that began the capture; in imported recordings CUPTI's number, the same on a call and the device's rows that it launched"},
			delta: true, ints: func(s *span) (int64, bool) { return ofInt64(s.Detail.CorrelationID) }},
		{Column: Column{"bytes", BigInt, "bytes", true, 21, "how much was copied, set, allocated or sent"},
			ints: func(s *span) (int64, bool) { return ofInt64(s.Detail.Bytes) }},
		{Column: Column{"direction", Varchar, "", true, 22, "of a copy: host_to_device, device_to_host, device_to_device, …"},
			texts: func(s *span) (string, bool) { return unlessEmpty(s.Detail.Direction) }},
		{Column: Column{"work_x", BigInt, "", true, 23, "launch size in work items (threads), x"},
			ints: func(s *span) (int64, bool) { return ofDim(s.Detail.Work, 0) }},
		{Column: Column{"work_y", BigInt, "", true, 24, "launch size in work items (threads), y"},
			ints: func(s *span) (int64, bool) { return ofDim(s.Detail.Work, 1) }},
		{Column: Column{"work_z", BigInt, "", true, 25, "launch size in work items (threads), z"},
			ints: func(s *span) (int64, bool) { return ofDim(s.Detail.Work, 2) }},
		{Column: Column{"grid_x", BigInt, "", true, 26, "launch size in blocks (work groups), x; NULL when the runtime chooses"},
			ints: func(s *span) (int64, bool) { return ofDim(s.Detail.Grid, 0) }},
		{Column: Column{"grid_y", BigInt, "", true, 27, "launch size in blocks, y"},
			ints: func(s *span) (int64, bool) { return ofDim(s.Detail.Grid, 1) }},
		{Column: Column{"grid_z", BigInt, "", true, 28, "launch size in blocks, z"},
			ints: func(s *span) (int64, bool) { return ofDim(s.Detail.Grid, 2) }},
		{Column: Column{"block_x", BigInt, "", true, 29, "block size in threads (work items), x; NULL when the runtime chooses"},
			ints: func(s *span) (int64, bool) { return ofDim(s.Detail.Block, 0) }},
		{Column: Column{"block_y", BigInt, "", true, 30, "block size in threads, y"},
			ints: func(s *span) (int64, bool) { return ofDim(s.Detail.Block, 1) }},
		{Column: Column{"block_z", BigInt, "", true, 31, "block size in threads, z"},
			ints: func(s *span) (int64, bool) { return ofDim(s.Detail.Block, 2) }},
		{Column: Column{"shared_bytes", BigInt, "bytes", true, 32, "dynamic shared memory of the launch, per block"},
			ints: func(s *span) (int64, bool) { return ofInt64(s.Detail.SharedBytes) }},
		{Column: Column{"dtype", Varchar, "", true, 33, "element type, as the library names it"},
			texts: func(s *span) (string, bool) { return unlessEmpty(s.Detail.Dtype) }},
		{Column: Column{"element_count", BigInt, "elements", true, 34, "number of elements"},
			ints: func(s *span) (int64, bool) { return ofInt64(s.Detail.ElementCount) }},
		{Column: Column{"communicator", BigInt, "", true, 35, "which group of ranks: a hash of the id that they share, so the same on every " +
			"rank and host; NULL where it was made before the recording, or has no name (table communicator)"},
			ints: func(s *span) (int64, bool) { return ofInt64(s.Detail.Communicator) }},
		{Column: Column{"peer_rank", Integer, "", true, 36, "the other rank of a send or receive, the root of a broadcast or reduce"},
			ints: func(s *span) (int64, bool) { return ofInt32(s.Detail.PeerRank) }},
		{Column: Column{"error_code", BigInt, "", true, 37, "the runtime's own code where status is error; of PJRT_Error_GetCode, that of the " +
			"error it is asked about"},
			ints: func(s *span) (int64, bool) { return ofInt64(s.Detail.ErrorCode) }},
		{Column: Column{"device_time_lo_ns", BigInt, "ns", true, 38, "time on the device, at least: more than 0 where a blocked wait was for " +
			"that work alone"},
			ints: func(s *span) (int64, bool) { return ofInt64(s.Detail.DeviceTimeLoNS) }},
		{Column: Column{"device_time_hi_ns", BigInt, "ns", true, 39, "time on the device, at most"},
			ints: func(s *span) (int64, bool) { return ofInt64(s.Detail.DeviceTimeHiNS) }},
		{Column: Column{"device_time_method", Varchar, "", true, 40, "how the device time is known: measured, bounded, estimated or imported; " +
			"on a row of layer device that was merged into a recording: profiler (of a trace that the job's own profiler wrote on demand), file " +
			"(ebpfprof merge) or cupti (run --device-times cupti)"},
			texts: func(s *span) (string, bool) { return unlessEmpty(s.Detail.DeviceTimeMethod) }},
		{Column: Column{"device_busy_lo_ns", BigInt, "ns", true, 86, "on a wait for work on a device: for how long the device was at work " +
			"meanwhile, at least, whichever piece of the work it was; the rows of a device have no time in common, so that their sum is a " +
			"lower bound, too"},
			ints: func(s *span) (int64, bool) { return ofInt64(waitOf(s).DeviceBusyLoNS) }},
		{Column: Column{"name_source", Varchar, "", true, 41, "how a launch's name is known: getfunction (the call that made the handle), " +
			"cufunc_struct (read behind the handle), host_stub (symbol of the host function), library (only whose code launched it: the name is " +
			"\"kernel of LIBRARY\"), unknown (name is that of the runtime's function)"},
			texts: func(s *span) (string, bool) { return unlessEmpty(s.Detail.NameSource) }},
		{Column: Column{"symbol", Varchar, "", true, 42, "the launched kernel's name as its module has it: mangled"},
			texts: func(s *span) (string, bool) { return unlessEmpty(s.Detail.Symbol) }},
		{Column: Column{"communicator_handle", BigInt, "", true, 43, "the collective library's handle of the communicator, in this process"},
			ints: func(s *span) (int64, bool) { return ofInt64(s.Detail.CommunicatorHandle) }},
		{Column: Column{"rank", Integer, "", true, 44, "the caller's rank in the communicator; NULL where that was made before the recording, " +
			"or is a part (ncclCommSplit) of which not all ranks were recorded, and the job did not ask for it"},
			ints: func(s *span) (int64, bool) { return ofInt32(s.Detail.Rank) }},
		{Column: Column{"ranks", Integer, "", true, 45, "how many ranks the communicator has; NULL as for rank"},
			ints: func(s *span) (int64, bool) { return ofInt32(s.Detail.Ranks) }},
		{Column: Column{"group_depth", Integer, "", true, 46, "in how many groups of collective calls it was made: it runs when the outermost " +
			"ends; NULL outside of groups"},
			ints: func(s *span) (int64, bool) { return ofInt32(s.Detail.GroupDepth) }},
		{Column: Column{"handle", BigInt, "", true, 60, "the runtime's handle of what was launched or made: a kernel, an executable"},
			ints: func(s *span) (int64, bool) { return ofInt64(s.Detail.Handle) }},
		{Column: Column{"device_count", BigInt, "", true, 61, "over how many devices one execution runs (PJRT)"},
			ints: func(s *span) (int64, bool) { return ofInt64(s.Detail.DeviceCount) }},
		{Column: Column{"argument_count", BigInt, "", true, 62, "how many arguments an execution has on each device (PJRT)"},
			ints: func(s *span) (int64, bool) { return ofInt64(s.Detail.ArgumentCount) }},
		{Column: Column{"input_dims", Varchar, "", true, 72, "sizes of the operator's arguments, as JSON: [[141, 512], [512, 512], []]; [] of " +
			"what is no tensor and of a tensor without dimensions; of a list of tensors (TensorList) how many there are"},
			texts: func(s *span) (string, bool) { return unlessEmpty(shapeOf(s).Dims) }},
		{Column: Column{"input_types", Varchar, "", true, 73, "element types of its arguments, as JSON"},
			texts: func(s *span) (string, bool) { return unlessEmpty(shapeOf(s).Types) }},
		{Column: Column{"input_strides", Varchar, "", true, 74, "strides of its arguments, as JSON"},
			texts: func(s *span) (string, bool) { return unlessEmpty(shapeOf(s).Strides) }},
		{Column: Column{"input_bytes", Varchar, "", true, 96, "bytes of the elements of its arguments, as JSON: [288768, 1048576, null]; of a " +
			"list of tensors those of all; null of what is no tensor, and of a list of tensors of several types or of more than 64"},
			texts: func(s *span) (string, bool) { return unlessEmpty(shapeOf(s).Bytes) }},
		{Column: Column{"input_devices", Varchar, "", true, 97, "where its arguments lie, as JSON: [\"cuda:0\", \"cuda:0\", \"\"]; of a list " +
			"of tensors the first of them"},
			texts: func(s *span) (string, bool) { return unlessEmpty(shapeOf(s).Devices) }},
		{Column: Column{"flops", BigInt, "FLOP", true, 75, "floating-point operations that follow from its shapes (docs/json.md has the " +
			"formulas): matrix products, attention, convolutions; once where operators of one call stand in each other"},
			ints: func(s *span) (int64, bool) { return ofInt64(shapeOf(s).FLOPs) }},
		{Column: Column{"flops_causal", BigInt, "FLOP", true, 98, "of attention with a causal mask and as many queries as keys: the half of " +
			"flops that the mask leaves; NULL on all else"},
			ints: func(s *span) (int64, bool) { return ofInt64(shapeOf(s).FLOPsCausal) }},
		{Column: Column{"bytes_moved", BigInt, "bytes", true, 76, "bytes of its inputs, weights, bias and output, each once; where flops is"},
			ints: func(s *span) (int64, bool) { return ofInt64(shapeOf(s).BytesMoved) }},
		{Column: Column{"shape_source", Varchar, "", true, 77, "how the shapes are known: measured (read from the arguments when the call " +
			"began), imported"},
			texts: func(s *span) (string, bool) { return unlessEmpty(shapeOf(s).Source) }},
		{Column: Column{"file_system", Varchar, "", true, 82, "on a long read or write (layer io): type of the file system, as in io"},
			texts: func(s *span) (string, bool) { return unlessEmpty(s.Detail.FileSystem) }},
		{Column: Column{"mount", Varchar, "", true, 83, "likewise: where the process has it mounted"},
			texts: func(s *span) (string, bool) { return unlessEmpty(s.Detail.Mount) }},
		{Column: Column{"path", Varchar, "", true, 85, "likewise: the file's path, where --paths asked for paths; as in io"},
			texts: func(s *span) (string, bool) { return unlessEmpty(s.Detail.Path) }},
		{Column: Column{"waited_ns", BigInt, "ns", true, 84, "likewise: how much of it the thread was off the CPU"},
			ints: func(s *span) (int64, bool) { return ofInt64(s.Detail.WaitedNS) }},
		{Column: Column{"fused_operators", Varchar, "", true, 95, "on a generated kernel (category fused; of Triton's also on the launch in " +
			"it): the operators that it replaces, as JSON: [\"aten::add\", \"aten::gelu\"]; NULL where neither its name nor the generated " +
			"module tells"},
			texts: func(s *span) (string, bool) { return unlessEmpty(s.Detail.FusedOperators) }},
		{Column: Column{"arguments", Varchar, "", true, 99, "on a call that --probe-symbol or --usdt asked for (layer user): the arguments and " +
			"the returned value that were asked for, as JSON: {\"n\": 3, \"path\": \"a\", \"return\": 0}; a pointer is a string in hexadecimal; " +
			"null is a null pointer, and what could not be read"},
			texts: func(s *span) (string, bool) { return unlessEmpty(s.Detail.Arguments) }},
		{Column: Column{"launch_id", BigInt, "", true, 90, "on a row of layer device: span_id of the call that launched it; NULL where that " +
			"was not recorded"},
			delta: true, ints: func(s *span) (int64, bool) { return ofInt64(s.Detail.LaunchID) }},
		{Column: Column{"wait_stream", BigInt, "", true, 91, "on a wait of a device (layer device, category sync): the stream that " +
			"it waited for"},
			ints: func(s *span) (int64, bool) { return ofInt64(waitOf(s).Stream) }},
		{Column: Column{"wait_correlation_id", BigInt, "", true, 92, "likewise: correlation_id of the call that recorded the event " +
			"it waited for"},
			delta: true, ints: func(s *span) (int64, bool) { return ofInt64(waitOf(s).CorrelationID) }},
	}
	for i := range columns {
		columns[i].rare = true
	}
	return columns
}

var noWait event.Wait

func waitOf(s *event.Span) *event.Wait {
	if s.Detail.Wait == nil {
		return &noWait
	}
	return s.Detail.Wait
}

var noShape event.Shape

func shapeOf(s *event.Span) *event.Shape {
	if s.Detail.Shape == nil {
		return &noShape
	}
	return s.Detail.Shape
}
