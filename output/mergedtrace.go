package output

import "github.com/ebpfprof/ebpfprof/tracer/event"

var mergedTraceTable = newTable(table[event.MergedTrace]{
	Table: Table{
		Name: "merged_trace",
		Row:  "one trace of another profiler that was merged into the recording",
		Description: "With --device-times profiler the job's own PyTorch writes a trace of a window of the recording; ebpfprof merge takes one " +
			"from a file. Its calls of the host are compared with those of the recording, by thread, name and order, and are not stored again. " +
			"Its rows of devices become spans of layer device, moved by offset_ns, with launch_id naming the recorded call. A job is slower " +
			"while its own profiler runs: step times between ts_ns and end_ns are not those of the undisturbed job.",
	},
	time: func(r *event.MergedTrace) int64 { return r.StartNS },
	columns: []column[event.MergedTrace]{
		{Column: Column{"ts_ns", BigInt, "ns", false, 2, "when the trace's first call of the host began, since the Unix epoch, by the " +
			"recording's clock"},
			delta: true, ints: func(r *event.MergedTrace) (int64, bool) { return r.StartNS, true }},
		{Column: Column{"end_ns", BigInt, "ns", false, 3, "when its last call ended"},
			delta: true, ints: func(r *event.MergedTrace) (int64, bool) { return r.EndNS, true }},
		{Column: Column{"pid", Integer, "", false, 4, "the process that it is of, in the tracer's pid namespace"},
			ints: func(r *event.MergedTrace) (int64, bool) { return integer(r.PID) }},
		{Column: Column{"source", Varchar, "", false, 5, "who recorded it: torch.profiler, nsys"},
			texts: func(r *event.MergedTrace) (string, bool) { return r.Source, true }},
		{Column: Column{"method", Varchar, "", false, 6, "how it came: profiler (the job wrote it on demand), file (ebpfprof merge) or cupti " +
			"(a library in the job handed it over)"},
			texts: func(r *event.MergedTrace) (string, bool) { return r.Method, true }},
		{Column: Column{"calls", BigInt, "calls", false, 7, "operators, scopes and backward nodes in the trace; where it has none in common " +
			"with the recording, its calls of the runtime, compared by their kind"},
			ints: func(r *event.MergedTrace) (int64, bool) { return r.Calls, true }},
		{Column: Column{"matched", BigInt, "calls", false, 8, "of them are calls of the recording as well"},
			ints: func(r *event.MergedTrace) (int64, bool) { return r.Matched, true }},
		{Column: Column{"other_thread", BigInt, "calls", false, 9, "of them are on a thread that the recording has no call of"},
			ints: func(r *event.MergedTrace) (int64, bool) { return r.OtherThread, true }},
		{Column: Column{"other_name", BigInt, "calls", false, 10, "of them have a name that the recording has not on that thread: no probe is " +
			"on such calls"},
			ints: func(r *event.MergedTrace) (int64, bool) { return r.OtherName, true }},
		{Column: Column{"outside_slices", BigInt, "calls", false, 19, "of them were made between the slices in which the recording " +
			"has all calls"},
			ints: func(r *event.MergedTrace) (int64, bool) { return r.OutsideSlices, true }},
		{Column: Column{"unmatched", BigInt, "calls", false, 11, "of them have no partner for none of these reasons"},
			ints: func(r *event.MergedTrace) (int64, bool) { return r.Unmatched, true }},
		{Column: Column{"recorded_only", BigInt, "calls", false, 12, "calls of the recording in that time, of names that the trace has on that " +
			"thread, that have no partner in the trace"},
			ints: func(r *event.MergedTrace) (int64, bool) { return r.RecordedOnly, true }},
		{Column: Column{"offset_ns", BigInt, "ns", true, 13, "how much later the same calls begin in the trace than in the recording, the " +
			"median; NULL where no call is in both"},
			ints: func(r *event.MergedTrace) (int64, bool) { return ofInt64(r.OffsetNS) }},
		{Column: Column{"offset_lo_ns", BigInt, "ns", true, 14, "the 5th percentile of the same"},
			ints: func(r *event.MergedTrace) (int64, bool) { return ofInt64(r.OffsetLoNS) }},
		{Column: Column{"offset_hi_ns", BigInt, "ns", true, 15, "the 95th percentile of the same"},
			ints: func(r *event.MergedTrace) (int64, bool) { return ofInt64(r.OffsetHiNS) }},
		{Column: Column{"longer_ns", BigInt, "ns", true, 16, "how much longer the same calls are in the recording, the median"},
			ints: func(r *event.MergedTrace) (int64, bool) { return ofInt64(r.LongerNS) }},
		{Column: Column{"device_rows", BigInt, "", false, 17, "rows of devices that were taken over"},
			ints: func(r *event.MergedTrace) (int64, bool) { return r.DeviceRows, true }},
		{Column: Column{"launched", BigInt, "", false, 18, "of them have the recorded call that launched them as launch_id"},
			ints: func(r *event.MergedTrace) (int64, bool) { return r.Launched, true }},
		{Column: Column{"bounds_checked", BigInt, "launches", false, 20, "recorded launches with device_time_lo_ns and device_time_hi_ns whose " +
			"device rows are in the trace"},
			ints: func(r *event.MergedTrace) (int64, bool) { return r.BoundsChecked, true }},
		{Column: Column{"bounds_held", BigInt, "launches", false, 21, "of them those whose device rows took a time within these bounds"},
			ints: func(r *event.MergedTrace) (int64, bool) { return r.BoundsHeld, true }},
	},
})
