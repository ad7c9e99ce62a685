package output

import "github.com/ebpfprof/ebpfprof/tracer/event"

var counterTable = newTable(table[event.Counter]{
	Table: Table{
		Name: "counter",
		Row:  "one reading of one counter of the machine or a device",
		Description: "Sources that are not there have no rows; `ebpfprof doctor` says which and why. The time between readings is what it was, " +
			"not what was asked for.",
	},
	time: func(c *event.Counter) int64 { return c.TSNS },
	columns: []column[event.Counter]{
		{Column: Column{"ts_ns", BigInt, "ns", false, 2, "when it was read, since the Unix epoch"},
			delta: true, ints: func(c *event.Counter) (int64, bool) { return c.TSNS, true }},
		{Column: Column{"period_ns", BigInt, "ns", true, 3, "the time before ts_ns that the value is of (delta, mean), or since the reading " +
			"before (gauge), as measured; NULL on a gauge's first reading, and where the driver does not say over what time it averages"},
			delta: true, ints: func(c *event.Counter) (int64, bool) { return ofInt64(c.PeriodNS) }},
		{Column: Column{"source", Varchar, "", false, 4, "cpu, pressure, frequency, thermal, energy, memory, cgroup, disk, network, " +
			"infiniband, nvidia, amd, neuron, process (what each has held of memory in the 30 s before memory ran out, five times a second; " +
			"nothing where it never did), or self (the sampler)"},
			texts: func(c *event.Counter) (string, bool) { return c.Source, true }},
		{Column: Column{"device_id", Integer, "", true, 5, "the accelerator, as its driver numbers them, which CUDA_VISIBLE_DEVICES and its " +
			"like change for the job; NULL for other devices"},
			ints: func(c *event.Counter) (int64, bool) { return ofInt32(c.DeviceID) }},
		{Column: Column{"device", Varchar, "", true, 6, "the device by name: cpu0 (of source frequency the first of those that have one " +
			"clock), package-0, package-0/dram, thermal_zone0, nvme0n1, eth0, mlx5_0:1 (port), a GPU's UUID or PCI address; NULL for the " +
			"whole machine"},
			texts: func(c *event.Counter) (string, bool) { return unlessEmpty(c.Device) }},
		{Column: Column{"scope", Varchar, "", true, 7, "what part of the machine it is of: a control group (with its controller, in " +
			"hierarchies of version 1) or a network namespace; of a thermal zone its type; NULL for the whole machine"},
			texts: func(c *event.Counter) (string, bool) { return unlessEmpty(c.Scope) }},
		{Column: Column{"pid", Integer, "", true, 8, "the process, of source process, where a driver tells them apart, and of a control group " +
			"in which only one of the job's has been seen: its pid on the machine"},
			ints: func(c *event.Counter) (int64, bool) { return ofInt32(c.PID) }},
		{Column: Column{"name", Varchar, "", false, 9, "what is counted: cpu_user, memory_available, gpu_busy, …; the same name for the same " +
			"thing of every vendor"},
			texts: func(c *event.Counter) (string, bool) { return c.Name, true }},
		{Column: Column{"kind", Varchar, "", false, 10, "gauge (the value at ts_ns), delta (what was added in period_ns) or mean (an average " +
			"over period_ns)"},
			texts: func(c *event.Counter) (string, bool) { return string(c.Kind), true }},
		{Column: Column{"unit", Varchar, "", false, 11, "ns, bytes, percent, count, watts, joules, celsius, hertz, bytes_per_second or " +
			"flag (1 or 0)"},
			texts: func(c *event.Counter) (string, bool) { return c.Unit, true }},
		{Column: Column{"value", Double, "", false, 12, "the value"},
			floats: func(c *event.Counter) (float64, bool) { return c.Value, true }},
	},
})
