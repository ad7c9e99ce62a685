// Package pattern makes a few numbers a function of what a worker did in a window:
// how much of the time was a function's, and how steadily it used its resource. They
// are what a fleet compares: kilobytes a window, instead of the events themselves.
//
// It takes events (tracer/event), live or read back from a dataset, and holds a fixed
// number of functions and windows whatever the job does: what does not fit is counted.
// The method is PerfTracker's (beta, mu, sigma), with one difference that its
// documentation names: the host's share comes from samples and waits of the training
// thread, so that it needs no probe on a function.
package pattern

import "strings"

// Class is what kind of work a function is: what to expect of it depends on it.
type Class string

// The classes.
const (
	Loader     Class = "loader"     // inside the data loader's next
	Collective Class = "collective" // inside a collective, or waiting for one
	Copy       Class = "copy"       // memory moved by a runtime's call
	Compute    Class = "compute"    // an operator, or a launch
	Kernel     Class = "kernel"     // work on a device: a launch, a graph of them
	IO         Class = "io"         // reading or writing, outside of the loader
	Python     Class = "python"     // Python, and what no class above claims
	Host       Class = "host"       // what the machine did to the thread: not run, stopped
	Other      Class = "other"      // not known: no stack, or above a limit
)

// Basis says where the numbers of a pattern come from.
type Basis string

const (
	// Sampled: samples of the training thread, and its waits of at least the recording's threshold,
	// each of them (exact) or sampled, where the recorder's budget had no room for each.
	Sampled Basis = "samples"
	// Counted: calls that a probe saw, each with its duration.
	Counted Basis = "calls"
	// Device: launches and copies whose time on the device is bounded. Beta is BetaLo, and
	// both are bounds: no more is known.
	Device Basis = "device"
)

// Pattern is one function on one worker in one window. Shares are of the time that
// the worker was observed, from 0 to 1.
type Pattern struct {
	Job      string
	Host     string
	PID      int32
	Rank     int32 // -1 where the recording has none
	BeginNS  int64 // of the window
	EndNS    int64
	Function uint64 // hash of what the function is: equal across workers and hosts
	Class    Class
	Name     string
	Stack    string // Python functions, root first, joined by ';'; "" without them
	File     string // of the innermost Python frame; "" without one
	Line     int32  // the line that most of the time was seen at; 0 without one
	Basis    Basis

	// Beta is the share of the observed time, Lo and Hi its 95 % interval: what was on
	// the CPU is an estimate of so many looks, waits are exact. On a device they are bounds.
	Beta, BetaLo, BetaHi float64
	// Mu and Sigma are mean and spread of how much of its resource the function used:
	// Resource "cpu" is the share of its time that it ran on a CPU (0 to 1), over the
	// seconds of the window; "bytes_per_second" the throughput of calls; "device" has none.
	Mu, Sigma float64
	Resource  string
	// Count is looks and waits (Sampled) or calls (Counted).
	Count int64
	// MeanNS, P99NS and LongestNS are of single waits or calls; 0 where there were none.
	// P99NS is the upper end of a class 19 % wide.
	MeanNS, P99NS, LongestNS int64
	// Preempted and Stopped are shares of the function's time in which the thread could
	// have run and another one did, and in which a signal had stopped it.
	Preempted, Stopped float64
	// Wait is the system call that most of its waiting was in; "" without waiting.
	Wait string
	// ObservedNS is how long the worker was observed in the window, Coverage the share
	// of it that some function accounts for.
	ObservedNS int64
	Coverage   float64
}

// Caller is the Python function that called an operator or a copy; "" where that is not known.
func (p *Pattern) Caller() string {
	if p.Class != Compute && p.Class != Copy {
		return ""
	}
	caller := p.Stack[strings.LastIndexByte(p.Stack, ';')+1:]
	return strings.TrimPrefix(caller, "…") // of a stack that was cut
}

// Untold reports whether a pattern is of what is not known, or of many functions.
func Untold(p *Pattern) bool {
	return p.Class == Other && (p.Name == withoutStack || p.Name == otherFunctions || p.Name == "unknown")
}

const (
	withoutStack   = "without a stack"
	otherFunctions = "other functions" // those that have no row of their own
)

// Step is one step of a worker, and how long its thread waited for peers in it.
type Step struct {
	Job      string
	Host     string
	PID      int32
	Rank     int32
	Number   int64
	BeginNS  int64
	PeriodNS int64
	WaitNS   int64 // waits in functions of class collective
	Exit     *Exit // the last collective that ended in the step; nil where none was seen to
	LoadNS   int64 // in the loader's next; -1 where the loader has no probe (torch before 2.0 marks it only for its profiler)
}

// Exit is when a process left a collective: nearly at the time at which all ranks of the
// group do, so that it tells their clocks apart.
type Exit struct {
	Communicator int64 // the group, the same on every rank
	Number       int64 // of the collective in it, likewise
	NS           int64 // by the node's clock
}
