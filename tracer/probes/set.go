// Package probes owns the probes that a recording has planned, and puts them in and out:
// the files that they are on, who maps those, their slots in the kernel's table, and
// which groups are in all the time and which in slices. What a file's probes are is
// planned elsewhere (package plan); when those in slices are in, the budget decides.
//
// All of it belongs to one goroutine, the manager's, but for Rows and what Write is given,
// which run on the decoder's: after the manager's last word on what they read.
//
// The package is no part of the public API: it may change with any version.
package probes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/slots"
	"github.com/ebpfprof/ebpfprof/tracer/weights"
)

// Config is what a Set stands on.
type Config struct {
	Kernel    *kernel.Programs
	Detaching *kernel.Detacher
	Chosen    Selection
	Most      slots.Amount
	Hazards   []features.Hazard // for which there are no return probes (ReturnHazards)
	// Shared: children are traced too, so that one link may serve all who map a file.
	Shared bool
	// Unused is how long a file that no process maps keeps its probes, and its slots beyond
	// that; FileRest if 0.
	Unused time.Duration
	// Prepare says what the probes of a plan take beside the call, before they have their
	// slots: from then on the flags of their specs are the manager's, and the decoder
	// reads none of them.
	Prepare func(*plan.Plan, *Found)
	// Table is what the decoder finds the probes in, Thinned what their rows stand for: it
	// belongs to the decoder's goroutine.
	Table   *probetable.Table
	Thinned weights.Thinned
	Job     Job
	Decoder Decoder
	Warn    func(event.Warning)
}

// Job is whose processes the probes are for.
type Job interface {
	Traced(pid int) bool
	Alive(pid int) bool // traced, and not exiting
}

// Decoder is where rows are written.
type Decoder interface {
	// Write runs on the decoder's goroutine, after what was asked of it before.
	Write(row func(event.Sink) error)
	// OnceDrained runs there once the rings have run empty.
	OnceDrained(f func())
	// Left makes rows of scopes whose end will not be seen.
	Left(open []kernel.OpenCall)
}

// Set are the files with probes.
type Set struct {
	config Config
	files  map[process.FileID]*File
	entries
	tiers
	links
	returns
	sharing
	leaving
	later
	steps   steps
	running bool // what is found from now on, the job has loaded meanwhile
	awaits  bool // a file has probes on collectives
	// recordsAll: every probe is in for good.
	recordsAll bool
	Late       Late
}

// steps are the probes of which one call is about one training step.
type steps struct {
	probes []*Probe
	past   uint64 // calls of those that were there before
}

// New makes a Set without files.
func New(c Config) *Set {
	s := &Set{config: c, files: map[process.FileID]*File{}, entries: newEntries(&c), tiers: newTiers()}
	s.links.set, s.returns.set, s.sharing.set, s.leaving.set, s.later.set = s, s, s, s, s
	s.leaving.rest = cmp.Or(c.Unused, FileRest)
	return s
}

// Files are those that a traced process maps, or has until a while ago.
func (s *Set) Files() map[process.FileID]*File { return s.files }

// Run tells that the recording goes on from here: what is mapped from now on, the job
// has loaded meanwhile.
func (s *Set) Run() { s.running = true }

// Awaits reports whether a file has had probes on the collectives of torch.distributed.
func (s *Set) Awaits() bool { return s.awaits }

// Found is a file that a process maps and in which there is something to probe.
type Found struct {
	Source    *plan.Source
	Plan      *plan.Plan
	Process   *process.Process
	Library   *process.Library
	Libraries []*process.Library // of the process, as far as they are known
	Again     bool               // it had no room before, and its warning has been given
	// Stackless reports whether the calls of a group take no stacks any more. The Set
	// fills it in.
	Stackless func(group string) bool
}

// Add takes a file, whose Source is the Set's from then on, and puts in its probes that
// are in all the time. It reports whether there was room for them.
func (s *Set) Add(found *Found) (room bool, err error) {
	id, made := found.Library.ID(), found.Plan
	f := newFile(found)
	found.Stackless = s.Stackless
	s.config.Prepare(made, found)
	if err := s.entries.add(f, ownerOf(found.Process), &s.config); err != nil {
		s.retireUnused() // the next may have more luck
		found.Source.Close()
		if !found.Again {
			s.config.Warn(event.Warning{TSNS: time.Now().UnixNano(), Kind: "attach", Source: found.Library.Path, Count: int64(len(made.Probes)),
				Detail: err.Error()})
		}
		return false, nil
	}
	if s.without != nil {
		made.DropReturns()
	}
	for i := range made.Probes {
		if err := s.specify(f, i); err != nil {
			return true, err
		}
	}
	s.warnUnknown(made)
	s.warnRest(made)
	f.exclusive = s.config.Shared && s.onlyOurs(id)
	s.files[id] = f
	if err := s.attachAnchors(f); err != nil {
		return true, err
	}
	if s.recordsAll {
		if err := s.attach(f, f.detail, s.usable(f, spec.Detail)); err != nil {
			return true, err
		}
	}
	switch took := time.Since(made.Begun); {
	case !s.running || len(made.Probes) == 0:
	case generatedCode(made):
		s.Late.add(made, took)
	default:
		s.config.Warn(event.Warning{
			TSNS: made.Begun.UnixNano(), Kind: "late", Source: found.Library.Path, Count: int64(len(made.Probes)),
			Detail: fmt.Sprintf("the job loaded it while it was recorded: calls in the first %d ms after it was seen, until its probes were in "+
				"place, are not recorded", took.Milliseconds()),
		})
	}
	return true, nil
}

// specify has the kernel know a file's probe.
func (s *Set) specify(f *File, i int) error {
	planned, p := &f.plan.Probes[i], s.at(f.base+uint32(i))
	s.awaits = s.awaits || planned.Function.Effect == spec.AwaitsWork
	if s.demoted[planned.Group.Name] {
		p.makeDetail(1)
	}
	if err := s.config.Kernel.SetSpec(p.Index, &planned.Spec); err != nil {
		return fmt.Errorf("writing the probe table: %w", err)
	}
	if planned.Function.Step && s.tier(planned.Group) == spec.Anchor && !slices.Contains(s.steps.probes, p) {
		s.steps.probes = append(s.steps.probes, p)
	}
	return nil
}

// Join puts the probes of a file that the Set has on one more process.
func (s *Set) Join(f *File, pid int, library *process.Library) error {
	f.mapped[pid] = library
	if f.exclusive {
		return nil // the link without a pid serves it already
	}
	if err := s.attachAnchors(f); err != nil {
		return err
	}
	if len(f.detail) > 0 {
		if err := s.attach(f, f.detail, s.attachedDetail(f)); err != nil {
			return err
		}
	}
	if s.running {
		s.Late.join(pid)
	}
	return nil
}

// Unmap takes a process off every file, but those that it still maps.
func (s *Set) Unmap(pid int, still map[process.FileID]bool) {
	for id, f := range s.files {
		if !still[id] {
			s.unmap(f, pid)
		}
	}
}

// Tick lets go of the files that no process has mapped for a while, and stops tracing those
// for everyone that others have begun to map.
func (s *Set) Tick(now time.Time) error {
	if err := s.giveBack(now); err != nil {
		return err
	}
	return s.yield()
}

// Close lets go of the files.
func (s *Set) Close() {
	for _, f := range s.files {
		f.source.Close()
	}
}

// warnUnknown says which functions of a runtime are newer than the catalog, and
// that a file with a runtime's name has none of the runtime's functions.
func (s *Set) warnUnknown(plan *plan.Plan) {
	unknown, none, err := plan.UnknownTo(s.config.Chosen.Groups)
	w := event.Warning{TSNS: time.Now().UnixNano(), Kind: "library", Source: plan.Path, Count: 1}
	switch {
	case err != nil:
		w.Detail = err.Error()
	case none:
		w.Detail = "named as a runtime's library, but exports none of its functions: it is not whole, or something else"
	case len(unknown) == 0:
		return
	default:
		w.Count = int64(len(unknown))
		w.Detail = fmt.Sprintf("variants of functions that are newer than this tracer: calls of them are not seen: %s",
			strings.Join(unknown, ", "))
	}
	s.config.Warn(w)
}
