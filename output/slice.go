package output

import "github.com/ebpfprof/ebpfprof/tracer/event"

var sliceTable = newTable(table[event.Slice]{
	Table: Table{
		Name: "slice",
		Row:  "one interval in which a group of probes recorded, and the stretch of the run that it stands for",
		Description: "Of one process and one phase: an interval that lies in two phases has a row for each. Written as soon as " +
			"it is known how far a slice's stretch goes, before the rows that were recorded in it. Without a budget there are none.",
	},
	time: func(s *event.Slice) int64 { return s.BeginNS },
	id:   func(s *event.Slice) int64 { return s.ID },
	columns: []column[event.Slice]{
		{Column: Column{"slice_id", BigInt, "", false, 2, "names it within its session; positive"},
			delta: true, ints: func(s *event.Slice) (int64, bool) { return s.ID, true }},
		{Column: Column{"pid", Integer, "", false, 3, "process, in the tracer's pid namespace"},
			ints: func(s *event.Slice) (int64, bool) { return integer(s.PID) }},
		{Column: Column{"probe_group", Varchar, "", false, 4, "the group of probes that was in"},
			texts: func(s *event.Slice) (string, bool) { return s.Group, true }},
		{Column: Column{"begin_ns", BigInt, "ns", false, 5, "from when on it recorded, since the Unix epoch"},
			delta: true, ints: func(s *event.Slice) (int64, bool) { return s.BeginNS, true }},
		{Column: Column{"end_ns", BigInt, "ns", false, 6, "until when"},
			delta: true, ints: func(s *event.Slice) (int64, bool) { return s.EndNS, true }},
		{Column: Column{"from_ns", BigInt, "ns", false, 7, "where the stretch begins that it stands for: in the middle of the pause before it; " +
			"the first begins with the recording"},
			delta: true, ints: func(s *event.Slice) (int64, bool) { return s.FromNS, true }},
		{Column: Column{"to_ns", BigInt, "ns", false, 8, "where that ends: in the middle of the pause after it; the last ends with " +
			"the recording"},
			delta: true, ints: func(s *event.Slice) (int64, bool) { return s.ToNS, true }},
		{Column: Column{"phase", Varchar, "", false, 9, "training, evaluation (batches without a backward pass) or other: strata, each " +
			"estimated by itself"},
			texts: func(s *event.Slice) (string, bool) { return s.Phase, true }},
		{Column: Column{"unit", Varchar, "", false, 10, "what it was counted in: steps (each seen by a probe that is always in), calls (of an " +
			"operator that stands in for steps, all of them counted), nodes (of autograd, as PyTorch numbers them) or time (nanoseconds)"},
			texts: func(s *event.Slice) (string, bool) { return s.Unit, true }},
		{Column: Column{"recorded", Double, "", false, 11, "how much of the phase it saw, in unit: n; 0 in a stretch that no slice saw"},
			floats: func(s *event.Slice) (float64, bool) { return s.Recorded, true }},
		{Column: Column{"represented", Double, "", false, 12, "how much of the phase lay in its stretch, in unit: L. Their sum over the slices " +
			"of a process, a group and a phase is all that there was"},
			floats: func(s *event.Slice) (float64, bool) { return s.Represented, true }},
		{Column: Column{"steps", Integer, "steps", false, 13, "how many whole steps it saw, or equal pieces where no steps are known: " +
			"slice_step of its rows goes from 1 to that"},
			ints: func(s *event.Slice) (int64, bool) { return integer(s.Steps) }},
	},
})
