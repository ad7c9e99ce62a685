package python

import "github.com/ebpfprof/ebpfprof/bpf"

// Outcome is how a walk of Python frames ended, or what else is counted of it:
// enum python_outcome in bpf/python.h, which indexes the map python_counts.
type Outcome uint32

// How often a code object that was known from the samples before was read again,
// and how often another one lay in its place (bpf/python_code.h, PYTHON_CHECK).
const (
	CodeChecked  = Outcome(bpf.PythonWalkPythonOutcomePYTHON_CODE_CHECKED)
	CodeDiffered = Outcome(bpf.PythonWalkPythonOutcomePYTHON_CODE_DIFFERED)
)

// Outcomes lists them in the order of the enum, with the names that they have
// in the terminal and in the dataset.
var Outcomes = []struct {
	Outcome Outcome
	Name    string
	// Whole: nothing is missing from the Python part of the stack.
	Whole  bool
	Detail string
}{
	{Outcome(bpf.PythonWalkPythonOutcomePYTHON_OK), "python_ok", true, "walked to the thread's first Python frame"},
	{Outcome(bpf.PythonWalkPythonOutcomePYTHON_NO_INTERPRETER), "python_no_interpreter", true, "the process runs no CPython that is known: " +
		"`ebpfprof doctor --pid` says why"},
	{Outcome(bpf.PythonWalkPythonOutcomePYTHON_NOT_INITIALISED), "python_not_initialised", true, "the interpreter was starting or ending"},
	{Outcome(bpf.PythonWalkPythonOutcomePYTHON_NO_THREAD_STATE), "python_no_thread_state", true, "a thread that never ran Python"},
	{Outcome(bpf.PythonWalkPythonOutcomePYTHON_NO_FRAMES), "python_no_frames", true, "a thread known to the interpreter that runs " +
		"no Python now"},
	{Outcome(bpf.PythonWalkPythonOutcomePYTHON_BAD_SLOT), "python_bad_slot", false, "the thread's slot for its interpreter state could " +
		"not be read"},
	{Outcome(bpf.PythonWalkPythonOutcomePYTHON_BAD_STATE), "python_bad_state", false, "the thread's interpreter state could not be read"},
	{Outcome(bpf.PythonWalkPythonOutcomePYTHON_FOREIGN_STATE), "python_foreign_state", false, "the thread's slot held another thread's " +
		"interpreter state"},
	{Outcome(bpf.PythonWalkPythonOutcomePYTHON_BAD_FRAME), "python_bad_frame", false, "a Python frame could not be read: those below it " +
		"are missing"},
	{Outcome(bpf.PythonWalkPythonOutcomePYTHON_BAD_ANCHOR), "python_bad_anchor", false, "the interpreter's link between C and Python frames " +
		"could not be read: the frames below it are missing"},
	{Outcome(bpf.PythonWalkPythonOutcomePYTHON_MAX_FRAMES), "python_max_frames", false, "more Python frames than are kept (--max-frames): " +
		"the outermost are missing"},
	{Outcome(bpf.PythonWalkPythonOutcomePYTHON_LOOP), "python_loop", false, "the list of Python frames ran in a circle"},
	{Outcome(bpf.PythonWalkPythonOutcomePYTHON_COLD_CODE), "python_cold_code", true, "a code object was not resident: its name was read " +
		"later, unverified"},
	{Outcome(bpf.PythonWalkPythonOutcomePYTHON_ENTERING), "python_entering", true, "the thread was on its way into a Python frame: the " +
		"stack ends with the one that calls it"},
	{CodeChecked, "python_code_checked", true, "a code object that was known from the samples before was read again, to compare"},
	{CodeDiffered, "python_code_differed", true, "of those, another one lay there: of up to seven samples before, one frame may be named " +
		"after the one before"},
}

// Name is the outcome's name, as it is in the dataset.
func (o Outcome) Name() string {
	for _, k := range Outcomes {
		if k.Outcome == o {
			return k.Name
		}
	}
	return "unknown"
}

// Whole reports that nothing is missing from the Python part of a stack.
func (o Outcome) Whole() bool {
	for _, k := range Outcomes {
		if k.Outcome == o {
			return k.Whole
		}
	}
	return false
}
