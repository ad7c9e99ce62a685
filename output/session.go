package output

import "github.com/ebpfprof/ebpfprof/tracer/event"

var sessionTable = newTable(table[event.Recording]{
	Table: Table{
		Name: "session",
		Row:  "one recording on one host",
	},
	columns: []column[event.Recording]{
		{Column: Column{"schema_version", Varchar, "", false, 2, "semantic version of this schema"},
			texts: func(*event.Recording) (string, bool) { return SchemaVersion, true }},
		{Column: Column{"tool_version", Varchar, "", true, 3, "version of ebpfprof"},
			texts: func(r *event.Recording) (string, bool) { return unlessEmpty(r.ToolVersion) }},
		{Column: Column{"host", Varchar, "", true, 4, "host name"},
			texts: func(r *event.Recording) (string, bool) { return unlessEmpty(r.Host) }},
		{Column: Column{"boot_id", Varchar, "", true, 5, "the kernel's boot id: equal on one host until it restarts"},
			texts: func(r *event.Recording) (string, bool) { return unlessEmpty(r.BootID) }},
		{Column: Column{"kernel", Varchar, "", true, 6, "kernel release"},
			texts: func(r *event.Recording) (string, bool) { return unlessEmpty(r.Kernel) }},
		{Column: Column{"cpu_model", Varchar, "", true, 7, "processor, as the kernel names it"},
			texts: func(r *event.Recording) (string, bool) { return unlessEmpty(r.CPUModel) }},
		{Column: Column{"started_ns", BigInt, "ns", false, 8, "when the recording began, since the Unix epoch"},
			delta: true, ints: func(r *event.Recording) (int64, bool) { return r.StartedNS, true }},
		{Column: Column{"ended_ns", BigInt, "ns", true, 9, "when it ended; NULL while it runs and when the tracer was killed"},
			delta: true, ints: func(r *event.Recording) (int64, bool) { return ofInt64(r.EndedNS) }},
		{Column: Column{"clock_offset_ns", BigInt, "ns", false, 10, "Unix epoch minus CLOCK_MONOTONIC at the start: every time is the kernel's " +
			"monotonic time plus this"},
			delta: true, ints: func(r *event.Recording) (int64, bool) { return r.ClockOffsetNS, true }},
		{Column: Column{"level", Varchar, "", true, 11, "anchor, window or deep"},
			texts: func(r *event.Recording) (string, bool) { return unlessEmpty(r.Level) }},
		{Column: Column{"command_line", Varchar, "", true, 12, "how ebpfprof was called: the whole command with its flags, as a shell takes it"},
			texts: func(r *event.Recording) (string, bool) { return unlessEmpty(r.CommandLine) }},
		{Column: Column{"duration_ns", BigInt, "ns", true, 13, "after which the recording was to end by itself (--duration); NULL: with the " +
			"job, or by a signal"},
			ints: func(r *event.Recording) (int64, bool) { return ofInt64(r.Parameters.DurationNS) }},
		{Column: Column{"follow_children", Boolean, "", true, 14, "whether children of the processes were recorded (without --no-follow)"},
			ints: func(r *event.Recording) (int64, bool) { return ofBool(r.Parameters.Follow) }},
		{Column: Column{"probe_groups", Varchar, "", true, 15, "what alone was to be recorded (--probe): groups, or KEY=GLOB[,…]; NULL: the " +
			"groups of the level"},
			texts: func(r *event.Recording) (string, bool) { return unlessEmpty(r.Parameters.Probe) }},
		{Column: Column{"budget_percent", Double, "percent", true, 16, "share of the job's time that the probes might take (--budget); NULL: " +
			"every call was to be recorded"},
			floats: func(r *event.Recording) (float64, bool) { return ofFloat(r.Parameters.Budget) }},
		{Column: Column{"frequency_hz", BigInt, "hertz", true, 17, "how often a second each CPU was looked at (--frequency); NULL: no " +
			"samples on the CPU"},
			ints: func(r *event.Recording) (int64, bool) { return ofInt64(r.Parameters.FrequencyHz) }},
		{Column: Column{"off_cpu_threshold_ns", BigInt, "ns", true, 18, "the shortest wait that was recorded (--off-cpu-threshold); " +
			"NULL: no waits"},
			ints: func(r *event.Recording) (int64, bool) { return ofInt64(r.Parameters.OffCPUNS) }},
		{Column: Column{"max_frames", BigInt, "frames", true, 19, "how many native, and how many Python, frames a stack had at the most " +
			"(--max-frames)"},
			ints: func(r *event.Recording) (int64, bool) { return unlessZero(r.Parameters.MaxFrames) }},
		{Column: Column{"verify_stacks", BigInt, "stacks", true, 20, "of how many stacks that a call had before one was walked to compare " +
			"(--verify-stacks)"},
			ints: func(r *event.Recording) (int64, bool) { return unlessZero(r.Parameters.VerifyStacks) }},
		{Column: Column{"buffer_bytes", BigInt, "bytes", true, 21, "size of the kernel's ring buffer (--buffer-size)"},
			ints: func(r *event.Recording) (int64, bool) { return unlessZero(r.Parameters.BufferBytes) }},
		{Column: Column{"counters_period_ns", BigInt, "ns", true, 22, "how often the machine's counters were read (--counters); " +
			"NULL: not at all"},
			ints: func(r *event.Recording) (int64, bool) { return ofInt64(r.Parameters.CountersNS) }},
		{Column: Column{"rotation_ns", BigInt, "ns", true, 23, "how often the growing tables got a new file: what a kill costs at the most"},
			ints: func(r *event.Recording) (int64, bool) { return unlessZero(r.Parameters.RotateNS) }},
		{Column: Column{"attach_with", Varchar, "", true, 24, "perf when it was asked for perf events; NULL: what the kernel does best"},
			texts: func(r *event.Recording) (string, bool) { return unlessEmpty(r.Parameters.AttachWith) }},
		{Column: Column{"redacted", Boolean, "", false, 25, "whether command lines, directories and names of the host were left out (--redact)"},
			ints: func(r *event.Recording) (int64, bool) { return boolean(r.Redacted) }},
		{Column: Column{"exclude", Varchar, "", true, 26, "what was to be left out (--exclude), KEY=GLOB[,…]; NULL: nothing"},
			texts: func(r *event.Recording) (string, bool) { return unlessEmpty(r.Parameters.Exclude) }},
		{Column: Column{"source", Varchar, "", false, 30, "who recorded: recorded (this tool), imported from torch.profiler, imported from nsys"},
			texts: func(r *event.Recording) (string, bool) { return sourceOf(r), true }},
		{Column: Column{"device_name", Varchar, "", true, 31, "model of the accelerators, where the recording says"},
			texts: func(r *event.Recording) (string, bool) { return unlessEmpty(r.DeviceName) }},
		{Column: Column{"hits", BigInt, "", true, 40, "how often probes were passed, recorded or not; NULL while it runs"},
			ints: func(r *event.Recording) (int64, bool) { return ofInt64(r.Hits) }},
		{Column: Column{"overhead_ns", BigInt, "ns", true, 41, "what the probes cost the job, in all its processes: each hit at the price that " +
			"was measured on this machine at the start, and what putting probes in and out stalls it; an estimate"},
			ints: func(r *event.Recording) (int64, bool) { return ofInt64(r.OverheadNS) }},
		{Column: Column{"overhead_percent", Double, "percent", true, 42, "what the recording cost, as a share of the job's own time: the sum " +
			"of cost_probes_percent to cost_own_percent, as far as they were measured; what CUPTI costs (run --device-times cupti) is not in it"},
			floats: func(r *event.Recording) (float64, bool) { return ofFloat(r.OverheadPercent) }},
		{Column: Column{"cost_probes_percent", Double, "percent", true, 44, "of it, hits of probes"},
			floats: costPart(func(c *event.CostParts) float64 { return c.Probes })},
		{Column: Column{"cost_in_out_percent", Double, "percent", true, 45, "putting probes in and taking them out"},
			floats: costPart(func(c *event.CostParts) float64 { return c.InOut })},
		{Column: Column{"cost_waits_percent", Double, "percent", true, 46, "the programs at switches of threads, at wake-ups and at ends of " +
			"system calls"},
			floats: costPart(func(c *event.CostParts) float64 { return c.Waits })},
		{Column: Column{"cost_io_percent", Double, "percent", true, 47, "those at reads and writes, and the longer way of each system call"},
			floats: costPart(func(c *event.CostParts) float64 { return c.IO })},
		{Column: Column{"cost_samples_percent", Double, "percent", true, 48, "samples"},
			floats: costPart(func(c *event.CostParts) float64 { return c.Samples })},
		{Column: Column{"cost_starts_percent", Double, "percent", true, 49, "processes that begin and end"},
			floats: costPart(func(c *event.CostParts) float64 { return c.Starts })},
		{Column: Column{"cost_own_percent", Double, "percent", true, 50, "the tracer's own CPU time, as far as the machine's CPUs were busy"},
			floats: costPart(func(c *event.CostParts) float64 { return c.Own })},
		{Column: Column{"budget_rule", Varchar, "", true, 43, "which limit held: budget, or two_steps where a run was so short that a first " +
			"slice of two steps took more than the budget; NULL without a budget"},
			texts: func(r *event.Recording) (string, bool) { return unlessEmpty(r.BudgetRule) }},
	},
})

var schemaFieldTable *table[schemaField]

// Built in init: its rows describe all tables, itself included.
func init() {
	schemaFieldTable = newTable(table[schemaField]{
		Table: Table{
			Name: "schema_field",
			Row:  "one column of one table: the dataset describes itself",
		},
		columns: []column[schemaField]{
			{Column: Column{"table_name", Varchar, "", false, 2, "the table"},
				texts: func(f *schemaField) (string, bool) { return f.table, true }},
			{Column: Column{"column_name", Varchar, "", false, 3, "the column"},
				texts: func(f *schemaField) (string, bool) { return f.column.Name, true }},
			{Column: Column{"type", Varchar, "", false, 4, "its SQL type"},
				texts: func(f *schemaField) (string, bool) { return string(f.column.Type), true }},
			{Column: Column{"unit", Varchar, "", true, 5, "its unit; NULL for names, ids and flags"},
				texts: func(f *schemaField) (string, bool) { return unlessEmpty(f.column.Unit) }},
			{Column: Column{"nullable", Boolean, "", false, 6, "whether a value can be absent"},
				ints: func(f *schemaField) (int64, bool) { return boolean(f.column.Nullable) }},
			{Column: Column{"field_id", Integer, "", false, 7, "its Parquet field id: stable, never used again"},
				ints: func(f *schemaField) (int64, bool) { return integer(f.column.FieldID) }},
			{Column: Column{"description", Varchar, "", false, 8, "what it means"},
				texts: func(f *schemaField) (string, bool) { return f.column.Description, true }},
		},
	})
}

func sourceOf(r *event.Recording) string {
	if r.Source == "" {
		return "recorded"
	}
	return r.Source
}

// costPart is one of the parts of a recording's cost.
func costPart(of func(*event.CostParts) float64) func(*event.Recording) (float64, bool) {
	return func(r *event.Recording) (float64, bool) {
		if r.Cost == nil {
			return 0, false
		}
		return 100 * of(r.Cost), true
	}
}
