package output

import "github.com/ebpfprof/ebpfprof/tracer/event"

var shortProcessTable = newTable(table[event.ShortProcess]{
	Table: Table{
		Name: "short_process",
		Row:  "children of one command that ended young, in some two seconds",
		Description: "A child that a traced process starts gets no probes and no samples before it has lived for half a second, or " +
			"calls what is probed: to look at it would cost the job more than it takes itself. Those that end before are counted here, by what " +
			"the kernel tells of each process, and have no row of process. A copy of a process with a framework, which executes no program, is " +
			"looked at after a tenth of a second; the children of a job without a framework at once, the first 64 of them.",
	},
	time: func(r *event.ShortProcess) int64 { return r.TSNS },
	columns: []column[event.ShortProcess]{
		{Column: Column{"ts_ns", BigInt, "ns", false, 2, "after when they ended, since the Unix epoch"},
			delta: true, ints: func(r *event.ShortProcess) (int64, bool) { return r.TSNS, true }},
		{Column: Column{"end_ns", BigInt, "ns", false, 3, "before when they ended, and their parent had taken note of it"},
			delta: true, ints: func(r *event.ShortProcess) (int64, bool) { return r.EndNS, true }},
		{Column: Column{"parent_pid", Integer, "", false, 4, "the traced process that started them, or what started them, in the tracer's " +
			"pid namespace"},
			ints: func(r *event.ShortProcess) (int64, bool) { return integer(r.ParentPID) }},
		{Column: Column{"command", Varchar, "", false, 5, "name of the program that they executed, its first 15 bytes; where executed is " +
			"false, of the thread that forked them"},
			texts: func(r *event.ShortProcess) (string, bool) { return r.Command, true }},
		{Column: Column{"executed", Boolean, "", false, 6, "whether they executed a program; else they were copies of the process that " +
			"forked them"},
			ints: func(r *event.ShortProcess) (int64, bool) { return boolean(r.Executed) }},
		{Column: Column{"count", BigInt, "processes", false, 7, "how many there were"},
			ints: func(r *event.ShortProcess) (int64, bool) { return r.Count, true }},
		{Column: Column{"failed", BigInt, "processes", false, 8, "of them ended with an error, or by a signal"},
			ints: func(r *event.ShortProcess) (int64, bool) { return r.Failed, true }},
		{Column: Column{"wall_ns", BigInt, "ns", false, 9, "from their beginnings to their ends, of all together"},
			ints: func(r *event.ShortProcess) (int64, bool) { return r.WallNS, true }},
		{Column: Column{"cpu_ns", BigInt, "ns", false, 10, "that they used of a CPU, likewise"},
			ints: func(r *event.ShortProcess) (int64, bool) { return r.CPUNS, true }},
	},
})
