// Package budget keeps what a recording costs its job within a share of the job's
// own time: it decides when which probes are in. For how many calls each recorded one
// stands, tracer/weights says. Each part owns one thing: the account what the probes cost
// (price.go), anchors what those cost that are in all the time, the slicer the
// present slice (slice.go), strata what is new in a young job, the reference what is
// counted in a job without steps. The Governor decides by them what is next. What
// it decides is carried out by others, through the interfaces of this file.
//
// The package is no part of the public API: it may change with any version.
package budget

import (
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/site"
	"github.com/ebpfprof/ebpfprof/tracer/weights"
)

// Probe is what the account needs to know of a probe.
type Probe struct {
	weights.Probe
	Entry    site.Cost // of the site at its entry
	Worst    site.Cost // of the most expensive of its sites
	Stack    bool      // its calls have their stacks taken
	Line     bool      // else: its outermost calls have their Python frames taken
	Reads    float64   // nanoseconds that a recorded call's shapes take
	Launches bool      // its group gives way before the others
}

// Hits are the counters of one probe.
type Hits struct {
	Recorded uint64 // calls
	Traps    uint64 // what the job paid for, recorded or not
}

// Probes are those of the job, by their indices in the kernel's table. All but the
// anchors are in slices.
type Probes interface {
	At(index uint32) Probe
	// Anchors are the usable probes that are in all the time, Steps those of them of
	// which one call is about one training step, Sliced the usable ones that are not.
	Anchors() []uint32
	Steps() []uint32
	// PastSteps are the calls of those that are not among Steps any more, for nobody
	// maps their file.
	PastSteps() uint64
	Sliced() []uint32
	// AnySliced reports whether Sliced has any.
	AnySliced() bool

	// Hits reads counters, Calls how often a probe's entry was passed.
	Hits(probes []uint32) map[uint32]Hits
	Calls(index uint32) (uint64, bool)

	// Learn looks which sliced probes the job is known to use: how many, and which of
	// them are new.
	Learn() (known int, fresh []uint32)
	// InUse are those that it is known to use.
	InUse() []uint32
	// Sites is at how many places of the job's code probes are.
	Sites(probes []uint32) int

	// Attach puts probes in, AttachAll every sliced one for good, and those of files that
	// come later. Extend puts in what the job
	// uses and is not attached, and as many more as there is room for.
	Attach(probes []uint32) error
	AttachAll() error
	Extend(attached []uint32, room int) (more []uint32, err error)
	// Detach takes the sliced probes out, SweepScopes ends the scopes whose end
	// will not be seen.
	Detach()
	SweepScopes()
	// Demote takes groups of anchors out and puts them into slices, from an epoch on.
	Demote(groups []string, epoch uint32) error
	// LeaveStacks has the calls of groups take no stacks any more.
	LeaveStacks(groups []string) error
	// CountOnly counts the calls of a probe without recording them; nil where nobody
	// maps its file any more.
	CountOnly(index uint32) (Counting, error)
}

// Counting is a probe that only counts.
type Counting interface {
	Calls() (uint64, bool)
	Close()
}

// Job is what the probes are on.
type Job interface {
	weights.Job
	// TakingCost is what taking stacks has cost so far; SampleShare what sampling
	// takes of a thread's time.
	TakingCost() TakingCost
	SampleShare() float64
}

// TakingCost is what a call's stack costs, and the Python frames behind a call, of which
// most inherit theirs: nanoseconds a call, on average.
type TakingCost struct{ Stack, Line float64 }

// Switches are what the programs in the kernel look at.
type Switches interface {
	// SetDetail lets the sliced probes record, or pass by what they see.
	SetDetail(on bool) error
	// SetEpoch says that what the sliced probes have seen begin has no visible end,
	// SetAnchorEpoch that of anything.
	SetEpoch(epoch uint32) error
	SetAnchorEpoch(epoch uint32) error
	// PrepareRemoval returns when probes can be taken out at once.
	PrepareRemoval()
}

// Rows are what the sliced probes recorded. They wait for their weights, elsewhere.
type Rows interface {
	weights.Rows
	// Hold makes the rows of slices wait, or not.
	Hold(bool)
}

// weighed are the probes as the weights know them.
type weighed struct{ Probes }

func (w weighed) Probe(index uint32) weights.Probe { return w.At(index).Probe }

// joints are whom the parts of a Governor ask, and who carry out what it decides.
type joints struct {
	probes   Probes
	job      Job
	switches Switches
	rows     Rows
	warn     func(event.Warning)
}
