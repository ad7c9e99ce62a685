package tracer

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/budget"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/filter"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
)

// Level is how much is recorded.
type Level string

const (
	LevelAnchor Level = "anchor" // always on: scopes, backward passes, collectives; allocations in slices
	LevelWindow Level = "window" // a person looking: every operator, allocation, runtime call
	LevelDeep   Level = "deep"   // window, and a stack for every operator
	// LevelSamples puts no probe into the job: what is recorded are samples, if
	// Frequency or OffCPU ask for them.
	LevelSamples Level = "samples"
)

// Options say what a Session records.
type Options struct {
	PIDs []int
	// Starting are processes that are about to exec the job: what they are
	// before that does not matter.
	Starting []int
	Level    Level // LevelWindow if empty; others than the constants give ErrUnknownLevel
	// Filter says what of the level's groups is recorded, or of those that it names; its
	// zero value: all of the level's.
	Filter filter.Filter
	Follow bool // children of the processes too
	// Budget is the share of the job's time that the probes may cost, up to 1; 0
	// is the level's DefaultBudget, Unlimited records everything.
	Budget float64
	// Frequency is how often a second each CPU is looked at; 0 takes no samples.
	Frequency int
	// OffCPU is how long a thread must have been off the CPU to be recorded; 0
	// records no waits.
	OffCPU time.Duration
	// MaxFrames is how many frames of each kind, native and Python, a stack has at the
	// most; MostFrames if 0, which it cannot be more than. Of Python frames there are
	// MostPythonFrames at the most.
	MaxFrames int
	// VerifyStacks is of how many stacks that a call had before one is walked to
	// compare, and not only looked up; 1 walks all, 0 is 256.
	VerifyStacks int
	BufferBytes  int  // of the ring buffer, a power of two; 64 MiB if 0
	PerfEvents   bool // attach through perf events even where uprobe.multi works
	// Detaching is called a few times a second while the recording is over and its
	// probes are taken out, with how many links are left. That takes long only where
	// each probe is a perf event: some 0.1 s each, one after the other.
	Detaching func(left int)
	// Preparing is called a few times a second while the unwind tables of the
	// processes' libraries are made, with how many are done and of how many, until
	// it returns false. Stacks are taken after that, so that the first is as whole as
	// the last; tables of a library that was never recorded take seconds, cached ones
	// some milliseconds. nil takes stacks at once.
	Preparing func(done, of int) (goOn bool)
	// NoShapes leaves the shapes of operators' arguments alone.
	NoShapes bool
	// NoIO leaves what the job reads and writes alone.
	NoIO bool
	// Paths tells what it reads and writes apart by file: rows of io, and of span, have
	// their paths.
	Paths bool
	// Counters is how often the machine's counters are read; 0 leaves them alone.
	Counters time.Duration

	// AllowUserMounts has probes put into files of file systems that a user without
	// privileges may have mounted (FUSE, or in a user namespace): such a user can then stop
	// all forks of the machine for as long as it likes.
	AllowUserMounts bool

	// Asked is what is probed beside the catalog (package asked), nil if nothing is.
	Asked *spec.Group

	// Limits are other values for some of the Limits, by name.
	Limits map[string]int

	catalog []spec.Group    // instead of the catalog's own, for tests
	release string          // instead of the kernel's own, likewise
	hitCost *budget.HitCost // instead of what was measured, likewise
	// maxProcesses is how many places the kernel's table of them has, likewise.
	maxProcesses int
	// watchAll leaves what is watched as it is, whatever it costs: a test of its measuring.
	watchAll bool
	times    times
	// looking is called before files are looked into, likewise.
	looking func()
}

// times are instead of the tracer's own, for tests.
type times struct {
	unusedRest time.Duration // of probes.FileRest
	planning   time.Duration // how much of the CPU a file has to be planned at first
}

// Unlimited is the Budget of a recording that passes nothing by, whatever that costs
// the job.
const Unlimited = -1.0

// DefaultBudget is the share of the job's time that the probes of a level may cost
// where no option says otherwise.
func DefaultBudget(level Level) float64 {
	switch level {
	case LevelAnchor:
		return 0.01
	case LevelDeep, LevelSamples: // samples have no probes
		return Unlimited
	}
	return 0.05
}

// resolve fills in what the options leave open, and refuses what they cannot mean.
func (o *Options) resolve() error {
	switch o.Level {
	case "":
		o.Level = LevelWindow
	case LevelAnchor, LevelWindow, LevelDeep, LevelSamples:
	default:
		return fmt.Errorf("%w %q: choose %s, %s, %s or %s", ErrUnknownLevel, o.Level, LevelAnchor, LevelWindow, LevelDeep, LevelSamples)
	}
	switch {
	case o.Budget == 0:
		o.Budget = DefaultBudget(o.Level)
	case !(o.Budget <= 1): // NaN neither
		return fmt.Errorf("a budget of %v: give a share of the job's time up to 1, or Unlimited", o.Budget)
	}
	if o.MaxFrames == 0 {
		o.MaxFrames = kernel.MostFrames
	}
	if o.BufferBytes == 0 {
		o.BufferBytes = 64 << 20
	}
	return nil
}

// kernelSizes are what the kernel's programs are loaded for.
func (o *Options) kernelSizes() kernel.Sizes {
	sizes := kernel.Sizes{Ring: o.BufferBytes, Frames: o.MaxFrames, Targets: cmp.Or(o.maxProcesses, o.limit("processes")),
		Probes: o.limit("probes")}
	if o.takesStacks() {
		sizes.Verify = kernel.MemoEvery(o.VerifyStacks)
	}
	return sizes
}

// SelectGroups returns the catalog's groups for a level, or those whose names match the
// globs; groups on demand only by their whole name. A glob that matches none gives
// ErrUnknownGroup.
func SelectGroups(level Level, names []string) ([]spec.Group, error) {
	all := catalog.Groups()
	if len(names) == 0 && level == LevelSamples {
		return nil, nil
	}
	if len(names) == 0 {
		return slices.DeleteFunc(all, func(g spec.Group) bool {
			return g.OnDemand || level == LevelAnchor && !g.Anchor
		}), nil
	}
	var chosen []spec.Group
	for _, name := range names {
		matched, _ := path.Match(name, filter.IOGroup)
		for _, g := range all {
			if ok, _ := path.Match(name, g.Name); !ok || g.OnDemand && name != g.Name {
				continue
			}
			matched = true
			if !slices.ContainsFunc(chosen, func(c spec.Group) bool { return c.Name == g.Name }) {
				chosen = append(chosen, g)
			}
		}
		if !matched {
			return nil, fmt.Errorf("%w %q: ebpfprof probes --groups has their names", ErrUnknownGroup, name)
		}
	}
	return withCompanions(chosen, all), nil
}

// SelectGroups are the groups that are probed: those of the level, or those named, as far
// as the filter lets them. None gives ErrNothingToProbe.
func (o *Options) SelectGroups() ([]spec.Group, error) {
	groups, err := SelectGroups(o.Level, o.Filter.Probe[filter.Group])
	if err != nil {
		return nil, err
	}
	offered := len(groups)
	groups = o.Filter.Groups(groups)
	if o.Asked != nil {
		return append(groups, *o.Asked), nil // the last: package plan parts them there
	}
	if offered > 0 && len(groups) == 0 {
		return nil, fmt.Errorf("%w: no group of level %s has what --probe and --exclude leave", ErrNothingToProbe, o.Level)
	}
	return groups, nil
}

// withCompanions adds the groups that others need.
func withCompanions(chosen, all []spec.Group) []spec.Group {
	for i := 0; i < len(chosen); i++ {
		for _, name := range chosen[i].With {
			named := func(g spec.Group) bool { return g.Name == name }
			if !slices.ContainsFunc(chosen, named) {
				chosen = append(chosen, all[slices.IndexFunc(all, named)])
			}
		}
	}
	return chosen
}

// patient reports whether a job is watched for hours, where nobody waits for its first seconds.
func (o *Options) patient() bool { return o.Level == LevelAnchor }
