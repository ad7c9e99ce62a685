// Package event is what a recording consists of: spans, allocations, stacks,
// samples, readings, and the processes they are of. It owns the types alone, so
// that a dataset, an analysis or another program needs neither the loader nor
// its BPF objects to speak of them.
//
// A value that was not seen is absent, never zero: pointers are nil, and the few
// high-frequency fields that cannot afford a pointer name the value that stands
// for "absent".
//
// Every time is nanoseconds since the Unix epoch; every duration nanoseconds.
package event

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/symbolize"
)

// Call is what the catalog knows about one kind of call before it happens:
// one function of one library, or one class of autograd nodes. Spans share it
// by pointer, so that the hot path copies no strings.
type Call struct {
	Layer    string // scope, op, autograd, runtime, collective, user
	Category string // launch, copy, alloc, forward, backward, …; "" is absent
	Runtime  string // cuda, hip, opencl, …; "" outside an accelerator runtime
	Name     string // the name in the field's own words: "aten::addmm"
}

// EndMethod says how the end of a span is known.
type EndMethod uint8

const (
	// EndReturn: a return probe saw the call return.
	EndReturn EndMethod = iota
	// EndExitSite: a probe on an instruction that every normal return passes.
	EndExitSite
	// EndNextEntry: the next probed entry of the thread at an equal or higher
	// stack pointer. The duration is an upper bound.
	EndNextEntry
	// EndScope: the framework itself closed the scope.
	EndScope
	// EndUnfinished: still open when the recording, the slice or the thread
	// ended. The duration is absent.
	EndUnfinished
	// EndImported: another tool measured it.
	EndImported
	// EndInstant: it is an instant.
	EndInstant
)

var endMethodNames = [...]string{"return", "exit_site", "next_entry", "scope_end", "unfinished", "imported", "instant"}

func (m EndMethod) String() string {
	if int(m) < len(endMethodNames) {
		return endMethodNames[m]
	}
	return fmt.Sprintf("end_method(%d)", uint8(m))
}

// Status says how a call ended.
type Status uint8

const (
	// StatusAbsent: not known.
	StatusAbsent Status = iota
	// StatusOK: the call returned normally, or returned the runtime's success code.
	StatusOK
	// StatusThrew: the call was left by an exception: its entry was seen, its
	// exit passed by.
	StatusThrew
	// StatusError: the call returned an error code; Detail.ErrorCode has it.
	StatusError
	// StatusNotReady: a query's answer that work is not through yet.
	StatusNotReady
)

var statusNames = [...]string{"", "ok", "threw", "error", "not_ready"}

func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status(%d)", uint8(s))
}

// Span is something with a beginning: an operator, a scope, a backward pass, a
// collective, a call into an accelerator runtime.
type Span struct {
	ID       int64 // unique in the session, positive
	ParentID int64 // the innermost span around it on its thread; 0 is absent
	StartNS  int64
	// DurationNS is -1 when the end was not seen (EndUnfinished, StatusThrew
	// keeps the time at which the exception was noticed: an upper bound).
	DurationNS int64
	PID        int32 // in the tracer's pid namespace
	TID        int32
	Call       *Call
	End        EndMethod
	Status     Status
	// Weight is how many calls like it this row stands for: 1 unless the
	// budget recorded only slices of the run.
	Weight float64
	// SequenceNumber is the autograd sequence number, -1 when absent: on a
	// forward operator the last number it took, on a backward node its own. On a
	// collective it is which one of its group it is.
	SequenceNumber int64
	// PythonStackID is the Stack of the Python code behind the call, its Python frames
	// alone; 0 is absent. PythonStackSource says whose it is.
	PythonStackID     int64
	PythonStackSource LineSource
	// SliceID and SliceStep say in which slice it was recorded, and in which whole
	// step of that, counted from 1; 0 is absent.
	SliceID   int64
	SliceStep int32
	// Detail is nil for most operators.
	Detail *Detail
}

// LineSource says whose Python stack a call has.
type LineSource uint8

const (
	// LineAbsent: no Python code is known to be behind it.
	LineAbsent LineSource = iota
	// LineOwn: it was taken when the call began.
	LineOwn
	// LineInherited: that of the call around it, down to the outermost of the thread.
	LineInherited
	// LineForward: of a backward node: that of the operator that it differentiates.
	LineForward
)

var lineSourceNames = [...]string{"", "own", "inherited", "forward"}

func (s LineSource) String() string {
	if int(s) < len(lineSourceNames) {
		return lineSourceNames[s]
	}
	return fmt.Sprintf("line_source(%d)", uint8(s))
}

// MakeDetail returns the span's Detail, an empty one of its own if it had none.
func (s *Span) MakeDetail() *Detail {
	if s.Detail == nil {
		s.Detail = &Detail{}
	}
	return s.Detail
}

// Detail holds the columns of a span that only few calls have.
type Detail struct {
	StackID       *int64
	DeviceID      *int32
	Context       *int64
	Stream        *int64
	CorrelationID *int64
	Bytes         *int64
	Direction     string // host_to_device, device_to_host, …; "" is absent
	// Work is the number of work items in each dimension; Block how many make a
	// work group or thread block, nil when the runtime chooses; Grid how many
	// groups there are, nil when Block is.
	Work         *[3]int64
	Grid         *[3]int64
	Block        *[3]int64
	SharedBytes  *int64
	Dtype        string // "" is absent
	ElementCount *int64
	Communicator *int64 // the same on every rank
	// CommunicatorHandle is the library's own, in this process.
	CommunicatorHandle *int64
	Rank               *int32 // of the caller
	Ranks              *int32 // how many there are
	GroupDepth         *int32 // groups of calls around this one
	PeerRank           *int32
	// NameSource says how a launch's name is known (one of accel's Name constants); Symbol is the
	// kernel's name as its module has it.
	NameSource string // "" is absent
	Symbol     string // "" is absent
	// Handle is the runtime's handle of what was launched or made: a kernel, an executable.
	Handle *int64
	// DeviceCount and ArgumentCount are those of an execution that runs on several
	// devices at once.
	DeviceCount   *int64
	ArgumentCount *int64
	ErrorCode     *int64 // the runtime's own code when Status is StatusError

	DeviceTimeLoNS   *int64
	DeviceTimeHiNS   *int64
	DeviceTimeMethod string // "" is absent

	// LaunchID is, on a row of layer device, the span of the call that launched it.
	LaunchID *int64
	Wait     *Wait // of a wait for a device
	// Of a long read or write (layer io): as IO has them.
	FileSystem string // "" is absent
	Mount      string // "" is absent
	Path       string // "" is absent
	WaitedNS   *int64
	Shape      *Shape
	// FusedOperators are those that a generated kernel replaces, as JSON; "" is absent.
	FusedOperators string
	// Arguments are those that a user asked for (layer user), as JSON: {"n": 3, "return": 0}; "" is absent.
	Arguments string
}

// Shape is what a call of an operator was given, and what follows from it.
type Shape struct {
	Dims    string // sizes of the arguments as JSON: [[141, 512], [512, 512], []]
	Types   string // their element types, as JSON; "" is absent
	Strides string // likewise
	Bytes   string // of the elements of each, likewise: [288768, null]
	Devices string // where each lies, likewise: ["cuda:0", ""]
	// FLOPs, what a causal mask leaves of them, and BytesMoved by the formulas of internal/flops.
	FLOPs       *int64
	FLOPsCausal *int64
	BytesMoved  *int64
	Source      string // how the shape is known: imported, …
}

// Frame is one function on a call stack.
type Frame = symbolize.Frame

// Stack is one distinct call stack, leaf first. It comes before, or in the same
// batch as, what refers to it, and once in a session.
type Stack struct {
	ID     int64 // 63-bit hash of what the frames are, equal across processes and hosts
	Frames []Frame
	Folded string // root first, joined by ';'
	Status string // StackComplete, or why it is not
	// Inferred is how many of the native frames no unwind table led to, but a
	// frame pointer or what the instructions of the frame above it say.
	Inferred int32
}

// StackComplete is the status of a stack that reaches down to its thread's start.
const StackComplete = "complete"

// The values of Sample.State and Sample.Cause.
const (
	OnCPU  = "on_cpu"
	OffCPU = "off_cpu"

	CauseSyscall   = "syscall"   // it waited in a system call
	CauseFault     = "fault"     // it waited for a page
	CausePreempted = "preempted" // it could run, the CPU was another's
	CauseStopped   = "stopped"   // a signal stopped it, or a debugger
)

// Sample is one look at a thread.
type Sample struct {
	TSNS     int64
	PID      int32
	TID      int32
	CPU      int32
	State    string
	Cause    string // why it was off the CPU; "" on it
	WeightNS int64
	ReadyNS  int64 // of it, off the CPU: the thread could run and had no CPU
	StackID  *int64
	SpanID   int64  // the span around it, 0 is absent
	Syscall  string // "" is absent
	WakerTID *int32
	HoldsGIL *bool
	InGC     *bool
}

// ActionOutOfMemory is a Memory.Action: an allocation that found no room.
const ActionOutOfMemory = "out_of_memory"

// LevelKernel is a Memory.Level: the kernel had none, and kills the process.
const LevelKernel = "kernel"

// StackOfLastSample is a Memory.StackSource: the process's last sample before it.
const StackOfLastSample = "last_sample"

// Memory is one allocation or free.
type Memory struct {
	TSNS    int64
	PID     int32
	TID     int32
	Space   string // host, device, pinned, managed
	Level   string // driver, allocator, kernel
	Action  string // alloc, free, out_of_memory
	Address int64
	// Bytes is nil on a free whose allocation was not seen.
	Bytes *int64
	// DurationNS is how long the call took, nil where its beginning and its end were not both
	// seen: before TSNS of an allocation, which is there from then on; after it of a free.
	DurationNS          *int64
	DeviceID            *int32
	TotalAllocatedBytes *int64
	TotalReservedBytes  *int64
	StackID             *int64
	StackSource         string // whose it is, if it is not its own; "" is absent
	PythonStackID       int64  // as in Span
	PythonStackSource   LineSource
	SpanID              int64 // the span around it, 0 is absent
	Weight              float64
	Pool                *int64 // the memory pool's handle, where the call names one
	GraphExec           *int64 // the executable graph whose replay did it
	SliceID             int64  // as a Span's
	SliceStep           int32  // likewise
}

// Process is one traced process.
type Process struct {
	ID               int64 // stable hash of host, pid and start, non-negative
	PID              int32
	NSPID            *int32 // its pid in its own pid namespace
	ParentPID        *int32
	StartedNS        int64
	EndedNS          *int64
	ExitCode         *int32 // nil: a signal ended it, or its end was not told
	ExitSignal       *int32 // nil: it exited by itself, likewise
	Exe              string
	Command          string
	ContainerID      *string
	Cgroup           *string
	JobID            *string
	Rank             *int32
	LocalRank        *int32
	WorldSize        *int32
	PythonVersion    *string
	Framework        *string
	FrameworkVersion *string
}

// Thread is one thread of a traced process that had events.
type Thread struct {
	PID       int32
	TID       int32
	Name      string
	Role      *string // main, autograd, dataloader_worker, …
	StartedNS *int64
	EndedNS   *int64
	// By the kernel's scheduler, from the thread's first sample to the end of the recording;
	// nil of a thread that exited before, and of one that was never sampled.
	CPUNS      *int64 // on a CPU
	RunDelayNS *int64 // ready to run, without a CPU
}

// Library is one file mapped with execute permission.
type Library struct {
	PID          int32
	Path         string
	BuildID      *string
	StartAddress int64
	EndAddress   int64
	FileOffset   int64
	Deleted      bool
}

// Probe is one planned probe of one process.
type Probe struct {
	PID      int32
	Library  string
	Symbol   string
	Name     string // of the spans that come of it, as far as it is known beforehand: "aten::addmm"
	Layer    string
	Kind     string // entry, entry+exit, entry+return
	Site     *int64 // bytes from the function's start; nil when no site was found
	SiteCost string // nop5, emulated, stepped; "" when no site was found
	Attached bool
	Reason   string // why there, why that expensive, or why not attached
	Hits     int64
	Thinned  int64 // calls that slices passed by, estimated from the weights
	Lost     int64 // hits whose record was lost, any reason
	FirstIn  int64 // when it was first put in for a slice; 0: never
	Gone     bool  // no process maps the library any more: nothing more is reported of it
}

// Flow is an edge between two spans.
type Flow struct {
	TSNS       int64 // the start of the later span
	FromSpanID int64
	ToSpanID   int64
	Kind       string // forward_backward, capture_replay, capture_conditional, collective, launch_sync
	Method     string // sequence_number, …
}

// Warning is something to know before trusting the rest.
type Warning struct {
	TSNS   int64
	Kind   string // lost, slice, attach, process, …
	Source string // the counter, probe group or file it is about
	Count  int64
	Detail string
}

// Recording describes the session itself.
type Recording struct {
	ID            string
	ToolVersion   string
	Host          string
	BootID        string
	Kernel        string
	CPUModel      string
	StartedNS     int64
	EndedNS       *int64
	ClockOffsetNS int64 // Unix epoch minus CLOCK_MONOTONIC at the start
	Level         string
	CommandLine   string // the whole command with its flags, as a shell takes it
	Parameters    Parameters
	Redacted      bool // paths, command lines and names of the host were left out
	// Source says who recorded: "" is this tool; else imported and the tool's name.
	Source string
	// DeviceName is the accelerators' model; "" is absent.
	DeviceName string
	// What the probes of this very recording have cost its job, known at its end.
	Hits            *int64   // of probes, whether recorded or passed by
	OverheadNS      *int64   // estimated, in all processes
	OverheadPercent *float64 // of the job's own time, all parts of Cost
	// Cost is nil where what is not the probes' could not be measured.
	Cost       *CostParts
	BudgetRule string // which limit held: budget, two_steps; "" is absent
}

// Parameters are what a recording was asked for: two recordings are compared only
// with an eye on how each was taken. A pointer that is nil stands for "none".
type Parameters struct {
	DurationNS   *int64 // after which it ends by itself
	Follow       *bool  // children too
	Probe        string // a filter, KEY=GLOB[,…]; "" is what the level says
	Exclude      string // likewise; "" is nothing
	Budget       *float64
	FrequencyHz  *int64
	OffCPUNS     *int64 // shortest wait that is recorded
	MaxFrames    int64
	VerifyStacks int64
	BufferBytes  int64
	CountersNS   *int64 // how often the machine's counters are read
	RotateNS     int64
	AttachWith   string // "" is what suits the kernel
}
