// Package weights says what a recorded call stands for. The budget has expensive probes
// in for slices of a job's time only; what the job did in between belongs to one of the
// slices beside it, and the rows of that slice stand for it. The Gauge tells how far the
// job came between two moments: in training steps, autograd nodes, calls of a reference,
// or else time. The Ledger owns the slices that wait for their weights: which stretch each
// stands for, by process and phase, and what share of it each of its rows (sharing.go,
// shares.go). When slices begin and end, others decide (tracer/budget).
//
// The package is no part of the public API: it may change with any version.
package weights

import (
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/progress"
)

// Probe is what has to be known of a probe to weigh its rows.
type Probe struct {
	Index    uint32 // in the kernel's table
	Name     string // of its calls
	Group    string
	Function *spec.Function
	// UnusedUntil is up to when it is known that nothing called it, nanoseconds since the
	// Unix epoch: no row of it stands for what was before. 0 where that is not known.
	UnusedUntil int64
	// FirstIn is when it was first put in for a slice: none that began before has rows of
	// it. 0: it was there before the slices were.
	FirstIn int64
}

// Probes are those of the job, by their indices in the kernel's table.
type Probes interface {
	Probe(index uint32) Probe
	// Steps are those that are in all the time of which one call is about one training
	// step, PastSteps the calls of those that are not among them any more.
	Steps() []uint32
	PastSteps() uint64
	// Calls is how often a probe's entry was passed.
	Calls(index uint32) (uint64, bool)
}

// Job is what the probes are on.
type Job interface {
	// Processes are those that have a framework.
	Processes() []int
	// Libraries yields the files with probes.
	Libraries(yield func(progress.Library) bool)
}

// Rows are what the slices recorded. They wait for their weights, elsewhere.
type Rows interface {
	// Weigh writes slices and then weighs the rows of an epoch that began before a
	// time, nanoseconds since the Unix epoch, and lets them go, some time later. Then it
	// calls done with the mean weight of each probe's rows. weigh and done may be nil.
	Weigh(epoch uint32, before int64, slices []event.Slice, weigh Weigher, done func(means map[uint32]float64))
}

// A Weigher says what a row stands for: one of a probe, in a process, that began at a
// time, nanoseconds since the Unix epoch.
type Weigher = func(probe uint32, pid int32, at int64) Share

// Share is what a row stands for, and in which slice and whole step it was recorded.
type Share struct {
	Weight float64
	Slice  int64
	Step   int32
}

// alone is the Share of a row that stands for itself.
var alone = Share{Weight: 1}

// Mark is one moment, in time, in training steps and in autograd nodes.
type Mark struct {
	At      time.Time
	Steps   uint64
	Nodes   uint64
	Counted bool // Nodes is known
}

// Reference is what is counted all the time where there are neither steps nor nodes.
type Reference struct {
	Probe Probe
	Calls func() (uint64, bool)
	// Base is what the slice that chose it saw of it: with it that slice is counted by
	// the reference as well.
	Base  uint64
	Since time.Time // when it began to count
}
