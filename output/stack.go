package output

import (
	"github.com/ebpfprof/ebpfprof/output/columnfile"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// FrameFields are the members of an element of stack.frames. Their field ids
// count on where those of the table's columns cannot come.
var FrameFields = []Column{
	{"kind", Varchar, "", false, 101, "python, native, kernel, or op: an operator of the framework (aten::addmm), which stands directly " +
		"outside of the native function that everyone passes who calls it (at::_ops::addmm::call)"},
	{"function", Varchar, "", true, 102, "its qualified name in Python, its short demangled one in native code; native code without a " +
		"symbol is named after where its frame description begins, the same for the whole function: libcuda.so.1+0x1a2b30 (fn); NULL when not " +
		"even that is known"},
	{"file", Varchar, "", true, 103, "source file, where the debug information or the interpreter says"},
	{"line", Integer, "", true, 104, "line in file, from 1"},
	{"module", Varchar, "", true, 105, "file name of the library or program it is in (table library has the path); [kernel] or the kernel " +
		"module's name; [vdso]; [anon] for code in no file"},
	{"build_id", Varchar, "", true, 106, "build id of that file, in hexadecimal; where the linker wrote none, file- and a hash of " +
		"its contents"},
	{"offset", BigInt, "bytes", true, 107, "where in that file, as its program headers number addresses: what addr2line takes (of a caller: " +
		"a byte of the call, not the return address); of a kernel frame, from the beginning of the kernel or module; of a python frame, the " +
		"bytecode's offset"},
}

// frameGetters say where the members come from, in the order of FrameFields.
var frameGetters = []struct {
	ints  func(*event.Frame) (int64, bool)
	texts func(*event.Frame) (string, bool)
}{
	{texts: func(f *event.Frame) (string, bool) { return string(f.Kind), true }},
	{texts: func(f *event.Frame) (string, bool) { return unlessEmpty(f.Function) }},
	{texts: func(f *event.Frame) (string, bool) { return unlessEmpty(f.File) }},
	{ints: func(f *event.Frame) (int64, bool) { return unlessZero(int64(f.Line)) }},
	{texts: func(f *event.Frame) (string, bool) { return unlessEmpty(f.Module) }},
	{texts: func(f *event.Frame) (string, bool) { return unlessEmpty(f.BuildID) }},
	{ints: func(f *event.Frame) (int64, bool) { return unlessNegative(f.Offset) }},
}

var stackTable = newTable(table[event.Stack]{
	Table: Table{
		Name:        "stack",
		Row:         "one distinct call stack",
		Description: "Once a session, however often and in whichever process it was seen. `frames[1]` is the leaf.",
	},
	columns: []column[event.Stack]{
		{Column: Column{"stack_id", BigInt, "", false, 2, "63-bit hash of what the frames are (build id and offset; file, function and line): " +
			"equal across processes, runs and hosts"},
			ints: func(s *event.Stack) (int64, bool) { return s.ID, true }},
		{Column: Column{"frames", FrameList, "", false, 3, "the frames, leaf first"},
			frames: func(s *event.Stack) []event.Frame { return s.Frames }},
		{Column: Column{"folded", Varchar, "", false, 4, "the functions, root first, joined by ';': what flame graph tools read"},
			texts: func(s *event.Stack) (string, bool) { return s.Folded, true }},
		{Column: Column{"status", Varchar, "", false, 5, "complete (down to the thread's start), or why not: native_no_table, " +
			"python_bad_frame, …, joined by ','"},
			texts: func(s *event.Stack) (string, bool) { return s.Status, true }},
		{Column: Column{"inferred_frames", Integer, "", false, 6, "native frames that no unwind table led to, but a frame pointer, or what the " +
			"instructions of the frame above say (code without a description: MKL's, oneDNN's generated kernels); when the stack was first seen"},
			ints: func(s *event.Stack) (int64, bool) { return integer(s.Inferred) }},
	},
})

var sampleTable = newTable(table[event.Sample]{
	Table: Table{
		Name: "sample",
		Row:  "one look at a thread",
		Description: "On the CPU by a clock; off the CPU whenever it was longer than the threshold (--off-cpu-threshold). Sums of " +
			"`weight_ns` are time.",
	},
	time: func(s *event.Sample) int64 { return s.TSNS },
	columns: []column[event.Sample]{
		{Column: Column{"ts_ns", BigInt, "ns", false, 2, "when, since the Unix epoch; off the CPU: when it left it"},
			delta: true, ints: func(s *event.Sample) (int64, bool) { return s.TSNS, true }},
		{Column: Column{"pid", Integer, "", false, 3, "process, in the tracer's pid namespace"},
			ints: func(s *event.Sample) (int64, bool) { return integer(s.PID) }},
		{Column: Column{"tid", Integer, "", false, 4, "thread, in the tracer's pid namespace"},
			ints: func(s *event.Sample) (int64, bool) { return integer(s.TID) }},
		{Column: Column{"cpu", Integer, "", false, 5, "the CPU it was on; off the CPU: the one it came back on"},
			ints: func(s *event.Sample) (int64, bool) { return integer(s.CPU) }},
		{Column: Column{"state", Varchar, "", false, 6, "on_cpu or off_cpu"},
			texts: func(s *event.Sample) (string, bool) { return s.State, true }},
		{Column: Column{"cause", Varchar, "", true, 7, "why it was off the CPU: syscall (it waited in one), fault (a page had to come), " +
			"preempted (it could run, the CPU was another's) or stopped (by a signal, or a debugger)"},
			texts: func(s *event.Sample) (string, bool) { return unlessEmpty(s.Cause) }},
		{Column: Column{"weight_ns", BigInt, "ns", false, 8, "the time it stands for: the sampling period on the CPU, the measured wait off it"},
			ints: func(s *event.Sample) (int64, bool) { return s.WeightNS, true }},
		{Column: Column{"stack_id", BigInt, "", true, 9, "its call stack; NULL when none was taken (of preempted threads at most one each 3 ms " +
			"and CPU) or it was lost (warning says how many)"},
			ints: func(s *event.Sample) (int64, bool) { return ofInt64(s.StackID) }},
		{Column: Column{"span_id", BigInt, "", true, 10, "the innermost span open on the thread"},
			delta: true, ints: func(s *event.Sample) (int64, bool) { return unlessZero(s.SpanID) }},
		{Column: Column{"syscall", Varchar, "", true, 11, "the system call it was in"},
			texts: func(s *event.Sample) (string, bool) { return unlessEmpty(s.Syscall) }},
		{Column: Column{"waker_tid", Integer, "", true, 12, "the thread that ended the wait; NULL when an interrupt did (a timer, a device), " +
			"or it was not seen"},
			ints: func(s *event.Sample) (int64, bool) { return ofInt32(s.WakerTID) }},
		{Column: Column{"holds_gil", Boolean, "", true, 13, "whether the thread held its interpreter's lock; NULL without one"},
			ints: func(s *event.Sample) (int64, bool) { return ofBool(s.HoldsGIL) }},
		{Column: Column{"in_gc", Boolean, "", true, 14, "whether its interpreter was collecting garbage; NULL without one"},
			ints: func(s *event.Sample) (int64, bool) { return ofBool(s.InGC) }},
		{Column: Column{"ready_ns", BigInt, "ns", true, 15, "off the CPU: of weight_ns, how long the thread could run and had no CPU: from " +
			"when it was woken on, or all of it where it was preempted (a CPU quota looks like this, too); NULL on the CPU"},
			ints: func(s *event.Sample) (int64, bool) { return s.ReadyNS, s.State == event.OffCPU }},
	},
})

func ofBool(p *bool) (int64, bool) {
	if p == nil {
		return 0, false
	}
	return boolean(*p)
}

// fillFrames fills one member of the lists of frames.
func fillFrames[T any](v *columnfile.Values, field int, rows []T, order []int32, frames func(*T) []event.Frame) {
	if g := frameGetters[field]; g.ints != nil {
		columnfile.ListInts(v, rows, order, frames, g.ints)
	} else {
		columnfile.ListTexts(v, rows, order, frames, g.texts)
	}
}
