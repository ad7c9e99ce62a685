package output

import "github.com/ebpfprof/ebpfprof/tracer/event"

var memoryTable = newTable(table[event.Memory]{
	Table: Table{
		Name: "memory",
		Row:  "one allocation or free",
	},
	time: func(m *event.Memory) int64 { return m.TSNS },
	columns: []column[event.Memory]{
		{Column: Column{"ts_ns", BigInt, "ns", false, 2, "when, since the Unix epoch"},
			delta: true, ints: func(m *event.Memory) (int64, bool) { return m.TSNS, true }},
		{Column: Column{"pid", Integer, "", false, 3, "process, in the tracer's pid namespace"},
			ints: func(m *event.Memory) (int64, bool) { return integer(m.PID) }},
		{Column: Column{"tid", Integer, "", false, 4, "thread, in the tracer's pid namespace"},
			ints: func(m *event.Memory) (int64, bool) { return integer(m.TID) }},
		{Column: Column{"space", Varchar, "", false, 5, "host, device, pinned or managed"},
			texts: func(m *event.Memory) (string, bool) { return m.Space, true }},
		{Column: Column{"level", Varchar, "", false, 6, "driver (the runtime's own allocation), allocator (the framework's, out of its cache) " +
			"or kernel (an out_of_memory that the kernel ends by killing the process)"},
			texts: func(m *event.Memory) (string, bool) { return m.Level, true }},
		{Column: Column{"device_id", Integer, "", true, 7, "the device, as the process numbers them; NULL for host memory"},
			ints: func(m *event.Memory) (int64, bool) { return ofInt32(m.DeviceID) }},
		{Column: Column{"action", Varchar, "", false, 8, "alloc, free or out_of_memory; at level driver also reserve and unreserve (addresses " +
			"without memory), map and unmap (memory that was allocated, at addresses): these four change no bytes"},
			texts: func(m *event.Memory) (string, bool) { return m.Action, true }},
		{Column: Column{"address", BigInt, "", false, 9, "where the block begins, 0 of an out_of_memory; for physical memory that has no " +
			"address yet (cuMemCreate), its handle"},
			ints: func(m *event.Memory) (int64, bool) { return m.Address, true }},
		{Column: Column{"bytes", BigInt, "bytes", true, 10, "the block's size, positive for alloc and free alike; NULL on a free whose " +
			"allocation was not seen, or not in the same slice, and where the kernel kills; of an out_of_memory what was asked for"},
			ints: func(m *event.Memory) (int64, bool) { return ofInt64(m.Bytes) }},
		{Column: Column{"duration_ns", BigInt, "ns", true, 22, "how long the call took: before ts_ns of an alloc, whose memory is there from " +
			"ts_ns on, and from ts_ns on of a free; at level allocator without what the probes add. NULL where its beginning and its end were not " +
			"both seen: all of a device's allocator, out_of_memory, and frees where return probes are out of the question"},
			ints: func(m *event.Memory) (int64, bool) { return ofInt64(m.DurationNS) }},
		{Column: Column{"total_allocated_bytes", BigInt, "bytes", true, 11, "what the allocator itself said was in use afterwards"},
			ints: func(m *event.Memory) (int64, bool) { return ofInt64(m.TotalAllocatedBytes) }},
		{Column: Column{"total_reserved_bytes", BigInt, "bytes", true, 12, "what the allocator itself said it held from the driver afterwards"},
			ints: func(m *event.Memory) (int64, bool) { return ofInt64(m.TotalReservedBytes) }},
		{Column: Column{"stack_id", BigInt, "", true, 13, "the call stack: a 63-bit hash of the frames, equal across processes and hosts"},
			ints: func(m *event.Memory) (int64, bool) { return ofInt64(m.StackID) }},
		{Column: Column{"stack_source", Varchar, "", true, 27, "whose stack_id is, where it is not that of the event itself: last_sample (the " +
			"process's last sample before the kernel killed it)"},
			texts: func(m *event.Memory) (string, bool) { return unlessEmpty(m.StackSource) }},
		{Column: Column{"python_stack_id", BigInt, "", true, 20, "the Python code behind it: a row of stack with the Python frames alone, " +
			"innermost first; NULL where no Python is on the thread's stack, or at level anchor"},
			ints: func(m *event.Memory) (int64, bool) { return unlessZero(m.PythonStackID) }},
		{Column: Column{"python_stack_source", Varchar, "", true, 21, "whose python_stack_id is: own (taken then) or inherited (of the " +
			"span around it)"},
			texts: func(m *event.Memory) (string, bool) { return unlessEmpty(m.PythonStackSource.String()) }},
		{Column: Column{"span_id", BigInt, "", true, 14, "the innermost span around it on its thread"},
			delta: true, ints: func(m *event.Memory) (int64, bool) { return unlessZero(m.SpanID) }},
		{Column: Column{"weight", Double, "events", false, 15, "how many events like it this row stands for: 1 unless only slices of the run " +
			"were recorded"},
			floats: func(m *event.Memory) (float64, bool) { return m.Weight, true }},
		{Column: Column{"pool", BigInt, "", true, 16, "the runtime's handle of the memory pool, where the call names one " +
			"(cuMemAllocFromPoolAsync)"},
			ints: func(m *event.Memory) (int64, bool) { return ofInt64(m.Pool) }},
		{Column: Column{"graph_exec", BigInt, "", true, 17, "the executable graph whose replay allocated or freed it (a memory node, or a " +
			"captured cuMemAllocAsync): span_id is the replay"},
			ints: func(m *event.Memory) (int64, bool) { return ofInt64(m.GraphExec) }},
		{Column: Column{"slice_id", BigInt, "", true, 25, "the slice it was recorded in; NULL where every event was recorded"},
			ints: func(m *event.Memory) (int64, bool) { return unlessZero(m.SliceID) }},
		{Column: Column{"slice_step", Integer, "", true, 26, "in which whole step of that slice, from 1; NULL in a step that the slice cut"},
			ints: func(m *event.Memory) (int64, bool) { return unlessZero(int64(m.SliceStep)) }},
	},
})

var flowTable = newTable(table[event.Flow]{
	Table: Table{
		Name: "flow",
		Row:  "an edge between two spans",
	},
	time: func(f *event.Flow) int64 { return f.TSNS },
	columns: []column[event.Flow]{
		{Column: Column{"ts_ns", BigInt, "ns", false, 2, "when the later span began, since the Unix epoch"},
			delta: true, ints: func(f *event.Flow) (int64, bool) { return f.TSNS, true }},
		{Column: Column{"from_span_id", BigInt, "", false, 3, "span_id of the cause"},
			delta: true, ints: func(f *event.Flow) (int64, bool) { return f.FromSpanID, true }},
		{Column: Column{"to_span_id", BigInt, "", false, 4, "span_id of the effect"},
			delta: true, ints: func(f *event.Flow) (int64, bool) { return f.ToSpanID, true }},
		{Column: Column{"kind", Varchar, "", false, 5, "forward_backward (operator to its backward node), capture_replay (a graph's launch to " +
			"a call whose work it ran again) or capture_conditional (likewise, in the body of a conditional node: it ran any number of times, " +
			"perhaps never); of torch.distributed, collective (from the call of the rank that came last to what the threads of the other ranks " +
			"ran, where all ranks of the group were recorded) and launch_sync (from what a thread ran, of NCCL from the call that asked for it, " +
			"to the wait for it); of accelerator runtimes launch_sync (from the last work of each stream that a wait was for to the wait)"},
			texts: func(f *event.Flow) (string, bool) { return f.Kind, true }},
		{Column: Column{"method", Varchar, "", false, 6, "what joined the two: sequence_number (of autograd, or of the collective in its " +
			"group), work (the c10d::Work that was run and waited for), stream_order (a stream's work runs one after the other), …"},
			texts: func(f *event.Flow) (string, bool) { return f.Method, true }},
	},
})

var warningTable = newTable(table[event.Warning]{
	Table: Table{
		Name: "warning",
		Row:  "something to know before trusting the rest",
	},
	time: func(w *event.Warning) int64 { return w.TSNS },
	columns: []column[event.Warning]{
		{Column: Column{"ts_ns", BigInt, "ns", false, 2, "when, since the Unix epoch"},
			delta: true, ints: func(w *event.Warning) (int64, bool) { return w.TSNS, true }},
		{Column: Column{"kind", Varchar, "", false, 3, "lost (events that were not recorded), slice (recorded in slices only), cost (what the " +
			"cost leaves out), attach, process, …"},
			texts: func(w *event.Warning) (string, bool) { return w.Kind, true }},
		{Column: Column{"source", Varchar, "", false, 4, "what it is about: a loss counter, a probe group, a file"},
			texts: func(w *event.Warning) (string, bool) { return w.Source, true }},
		{Column: Column{"count", BigInt, "", false, 5, "how many"},
			ints: func(w *event.Warning) (int64, bool) { return w.Count, true }},
		{Column: Column{"detail", Varchar, "", true, 6, "the same in a sentence"},
			texts: func(w *event.Warning) (string, bool) { return unlessEmpty(w.Detail) }},
	},
})
