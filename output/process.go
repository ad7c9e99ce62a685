package output

import "github.com/ebpfprof/ebpfprof/tracer/event"

var processTable = newTable(table[event.Process]{
	Table: Table{
		Name: "process",
		Row:  "one traced process",
	},
	columns: []column[event.Process]{
		{Column: Column{"process_id", BigInt, "", false, 2, "stable hash of host, pid and start: pids are used again, this is not"},
			delta: true, ints: func(p *event.Process) (int64, bool) { return p.ID, true }},
		{Column: Column{"pid", Integer, "", false, 3, "its pid in the tracer's pid namespace"},
			ints: func(p *event.Process) (int64, bool) { return integer(p.PID) }},
		{Column: Column{"ns_pid", Integer, "", true, 4, "its pid in its own pid namespace, as the job itself sees it"},
			ints: func(p *event.Process) (int64, bool) { return ofInt32(p.NSPID) }},
		{Column: Column{"parent_pid", Integer, "", true, 5, "pid of its parent"},
			ints: func(p *event.Process) (int64, bool) { return ofInt32(p.ParentPID) }},
		{Column: Column{"started_ns", BigInt, "ns", false, 6, "when it started, since the Unix epoch"},
			delta: true, ints: func(p *event.Process) (int64, bool) { return p.StartedNS, true }},
		{Column: Column{"ended_ns", BigInt, "ns", true, 7, "when it ended; NULL when it outlived the recording"},
			delta: true, ints: func(p *event.Process) (int64, bool) { return ofInt64(p.EndedNS) }},
		{Column: Column{"exe", Varchar, "", true, 8, "path of its program"},
			texts: func(p *event.Process) (string, bool) { return unlessEmpty(p.Exe) }},
		{Column: Column{"command", Varchar, "", true, 9, "its command line"},
			texts: func(p *event.Process) (string, bool) { return unlessEmpty(p.Command) }},
		{Column: Column{"container_id", Varchar, "", true, 10, "its container, from the cgroup path"},
			texts: func(p *event.Process) (string, bool) { return ofString(p.ContainerID) }},
		{Column: Column{"cgroup", Varchar, "", true, 11, "its cgroup path"},
			texts: func(p *event.Process) (string, bool) { return ofString(p.Cgroup) }},
		{Column: Column{"job_id", Varchar, "", true, 12, "the scheduler's or launcher's name for the job"},
			texts: func(p *event.Process) (string, bool) { return ofString(p.JobID) }},
		{Column: Column{"rank", Integer, "", true, 13, "its rank in the job, from 0"},
			ints: func(p *event.Process) (int64, bool) { return ofInt32(p.Rank) }},
		{Column: Column{"local_rank", Integer, "", true, 14, "its rank on its host, from 0"},
			ints: func(p *event.Process) (int64, bool) { return ofInt32(p.LocalRank) }},
		{Column: Column{"world_size", Integer, "ranks", true, 15, "how many ranks the job has"},
			ints: func(p *event.Process) (int64, bool) { return ofInt32(p.WorldSize) }},
		{Column: Column{"python_version", Varchar, "", true, 16, "version of the interpreter in it"},
			texts: func(p *event.Process) (string, bool) { return ofString(p.PythonVersion) }},
		{Column: Column{"framework", Varchar, "", true, 17, "the framework found in it: pytorch, …"},
			texts: func(p *event.Process) (string, bool) { return ofString(p.Framework) }},
		{Column: Column{"framework_version", Varchar, "", true, 18, "version of the framework"},
			texts: func(p *event.Process) (string, bool) { return ofString(p.FrameworkVersion) }},
		{Column: Column{"exit_code", Integer, "", true, 19, "what it exited with, 0 to 255; NULL where a signal ended it, and where its end " +
			"was not told"},
			ints: func(p *event.Process) (int64, bool) { return ofInt32(p.ExitCode) }},
		{Column: Column{"exit_signal", Integer, "", true, 20, "the signal that ended it: 9 is a kill, by the kernel too (memory has a row of " +
			"level kernel then); NULL where it exited by itself"},
			ints: func(p *event.Process) (int64, bool) { return ofInt32(p.ExitSignal) }},
	},
})

var threadTable = newTable(table[event.Thread]{
	Table: Table{
		Name: "thread",
		Row:  "one thread of a traced process that had events",
	},
	columns: []column[event.Thread]{
		{Column: Column{"pid", Integer, "", false, 2, "its process, in the tracer's pid namespace"},
			ints: func(t *event.Thread) (int64, bool) { return integer(t.PID) }},
		{Column: Column{"tid", Integer, "", false, 3, "its id, in the tracer's pid namespace"},
			ints: func(t *event.Thread) (int64, bool) { return integer(t.TID) }},
		{Column: Column{"name", Varchar, "", true, 4, "its name, as the kernel shows it"},
			texts: func(t *event.Thread) (string, bool) { return unlessEmpty(t.Name) }},
		{Column: Column{"role", Varchar, "", true, 5, "what it does in the framework: main, autograd, dataloader_worker, …"},
			texts: func(t *event.Thread) (string, bool) { return ofString(t.Role) }},
		{Column: Column{"started_ns", BigInt, "ns", true, 6, "when it started, since the Unix epoch"},
			delta: true, ints: func(t *event.Thread) (int64, bool) { return ofInt64(t.StartedNS) }},
		{Column: Column{"ended_ns", BigInt, "ns", true, 7, "when it ended; of a thread without calls, when it was last sampled; NULL when it " +
			"outlived the recording"},
			delta: true, ints: func(t *event.Thread) (int64, bool) { return ofInt64(t.EndedNS) }},
		{Column: Column{"cpu_ns", BigInt, "ns", true, 8, "time on a CPU by the kernel's scheduler, from its first sample to the end of the " +
			"recording; NULL of a thread that exited before, and of one that was never sampled"},
			ints: func(t *event.Thread) (int64, bool) { return ofInt64(t.CPUNS) }},
		{Column: Column{"run_delay_ns", BigInt, "ns", true, 9, "likewise: time in which it was ready to run and had no CPU"},
			ints: func(t *event.Thread) (int64, bool) { return ofInt64(t.RunDelayNS) }},
	},
})

var libraryTable = newTable(table[event.Library]{
	Table: Table{
		Name: "library",
		Row:  "one file mapped with execute permission",
	},
	columns: []column[event.Library]{
		{Column: Column{"pid", Integer, "", false, 2, "the process that maps it"},
			ints: func(l *event.Library) (int64, bool) { return integer(l.PID) }},
		{Column: Column{"path", Varchar, "", false, 3, "its path, as the process sees it"},
			texts: func(l *event.Library) (string, bool) { return l.Path, true }},
		{Column: Column{"build_id", Varchar, "", true, 4, "its build id, in hexadecimal"},
			texts: func(l *event.Library) (string, bool) { return ofString(l.BuildID) }},
		{Column: Column{"start_address", BigInt, "", false, 5, "first address of the mapping"},
			delta: true, ints: func(l *event.Library) (int64, bool) { return l.StartAddress, true }},
		{Column: Column{"end_address", BigInt, "", false, 6, "first address after the mapping"},
			delta: true, ints: func(l *event.Library) (int64, bool) { return l.EndAddress, true }},
		{Column: Column{"file_offset", BigInt, "bytes", false, 7, "where in the file the mapping begins"},
			ints: func(l *event.Library) (int64, bool) { return l.FileOffset, true }},
		{Column: Column{"deleted", Boolean, "", false, 8, "whether the file had been deleted or replaced on disk"},
			ints: func(l *event.Library) (int64, bool) { return boolean(l.Deleted) }},
	},
})

var probeTable = newTable(table[event.Probe]{
	Table: Table{
		Name:        "probe",
		Row:         "one planned probe of one process",
		Description: "Written when the recording ends.",
	},
	columns: []column[event.Probe]{
		{Column: Column{"pid", Integer, "", false, 2, "the process it was planned for"},
			ints: func(p *event.Probe) (int64, bool) { return integer(p.PID) }},
		{Column: Column{"library", Varchar, "", false, 3, "path of the file it sits in"},
			texts: func(p *event.Probe) (string, bool) { return p.Library, true }},
		{Column: Column{"symbol", Varchar, "", false, 4, "the function, as its symbol is spelled"},
			texts: func(p *event.Probe) (string, bool) { return p.Symbol, true }},
		{Column: Column{"layer", Varchar, "", false, 5, "layer of the spans that come of it"},
			texts: func(p *event.Probe) (string, bool) { return p.Layer, true }},
		{Column: Column{"kind", Varchar, "", false, 6, "which ends of a call its sites see, attached or not: entry (the end is that of the " +
			"next call on the thread: an upper bound, or not known), entry+exit (an instruction that every normal return passes) or entry+return " +
			"(a return probe, on C functions, and on what is a jump to one)"},
			texts: func(p *event.Probe) (string, bool) { return p.Kind, true }},
		{Column: Column{"site_offset", BigInt, "bytes", true, 7, "where it sits, from the function's start; NULL when no site was found"},
			ints: func(p *event.Probe) (int64, bool) { return ofInt64(p.Site) }},
		{Column: Column{"site_cost", Varchar, "", true, 8, "what a hit costs: nop5, emulated or stepped; NULL when no site was found"},
			texts: func(p *event.Probe) (string, bool) { return unlessEmpty(p.SiteCost) }},
		{Column: Column{"attached", Boolean, "", false, 9, "whether it was put in"},
			ints: func(p *event.Probe) (int64, bool) { return boolean(p.Attached) }},
		{Column: Column{"reason", Varchar, "", true, 10, "why there, why so expensive, or why not attached"},
			texts: func(p *event.Probe) (string, bool) { return unlessEmpty(p.Reason) }},
		{Column: Column{"hits", BigInt, "calls", false, 11, "how often it was passed while it was in"},
			ints: func(p *event.Probe) (int64, bool) { return p.Hits, true }},
		{Column: Column{"thinned", BigInt, "calls", false, 12, "calls that slices passed by, estimated from the weights"},
			ints: func(p *event.Probe) (int64, bool) { return p.Thinned, true }},
		{Column: Column{"lost", BigInt, "calls", false, 13, "hits whose record was lost, for any reason"},
			ints: func(p *event.Probe) (int64, bool) { return p.Lost, true }},
		{Column: Column{"name", Varchar, "", true, 14, "the function in the framework's or runtime's own words, as in span.name: aten::addmm"},
			texts: func(p *event.Probe) (string, bool) { return unlessEmpty(p.Name) }},
		{Column: Column{"first_in_ns", BigInt, "ns", true, 15, "when it was first put in for a slice: a slice that began before holds none of " +
			"its calls; NULL: it never was, or it was in before there were slices"},
			ints: func(p *event.Probe) (int64, bool) { return p.FirstIn, p.FirstIn != 0 }},
	},
})
