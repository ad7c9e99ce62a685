// Package probes owns the probes that a recording has planned, and puts them in and out:
// the files that they are on, who maps those, their places in the kernel's table, and
// which groups are in all the time and which in slices. What a file's probes are is
// planned elsewhere (package plan); when those in slices are in, the budget decides.
//
// All of it belongs to one goroutine, the manager's, but for Rows and what Write is given,
// which run on the decoder's: after the manager's last word on what they read.
package probes

import (
	"fmt"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/places"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// Config is what a Set stands on.
type Config struct {
	Kernel    *kernel.Programs
	Detaching *kernel.Detacher
	Chosen    Selection
	Most      places.Most
	Hazards   []features.Hazard // for which there are no return probes (ReturnHazards)
	// Shared: children are traced too, so that one link may serve all who map a file.
	Shared bool
	// Unused is how long a file that nobody maps keeps its probes, and its places beyond
	// that; FileRest if 0.
	Unused time.Duration
	// Prepare says what the probes of a plan take beside the call, before they have their
	// places: from then on the flags of their specs are the manager's, and the decoder
	// reads none of them.
	Prepare func(*plan.Plan, *Found)
	Budget  Budget
	Job     Job
	Decoder Decoder
	Warn    func(event.Warning)
}

// Budget is what the Set asks of the governor.
type Budget interface {
	RecordsAll() bool             // every probe is in for good
	Thinned(index uint32) float64 // on the decoder's goroutine
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
	// Left makes rows of scopes whose end nobody will see.
	Left(open []kernel.OpenCall)
}

// Probe is what the Set knows of an entry of the probe table.
type Probe struct {
	*probetable.Probe
	file     *File
	used     bool // the job is known to call it
	attached bool
	// before is what its place had counted for the probe that was there before.
	before        bpf.CallProbeCount
	thinnedBefore float64
	gone          bool // its place was given back: its row is written
}

// Attached reports whether the probe has been put in.
func (p *Probe) Attached() bool { return p.attached }

// Set are the files with probes.
type Set struct {
	config  Config
	table   probetable.Table
	places  *places.Table
	own     []*Probe // by index, as in the table
	files   map[process.FileID]*File
	links   *links
	demoted map[string]bool // anchor groups that are in slices
	steps   steps
	shared  sharing
	leaving leaving
	// withoutReturns is the hazard for which there are no return probes.
	withoutReturns *features.Hazard
	running        bool // what is found from now on, the job has loaded meanwhile
	awaits         bool // a file has probes on collectives
}

// steps are the probes of which one call is about one training step.
type steps struct {
	probes []*Probe
	past   uint64 // calls of those that were there before
}

// New makes a Set without files.
func New(c Config) *Set {
	s := &Set{config: c, places: places.New(c.Most), files: map[process.FileID]*File{}, demoted: map[string]bool{}}
	s.links = &links{set: s, Config: &s.config}
	s.shared.set = s
	s.leaving = leaving{set: s, rest: c.Unused}
	if s.leaving.rest == 0 {
		s.leaving.rest = FileRest
	}
	return s
}

// Table is what the decoder reads.
func (s *Set) Table() *probetable.Table { return &s.table }

// Files are those that a traced process maps, or has until a while ago.
func (s *Set) Files() map[process.FileID]*File { return s.files }

// All are the probes by their indices.
func (s *Set) All() []*Probe { return s.own }

func (s *Set) at(index uint32) *Probe { return s.own[index] }

// Run tells that the recording goes on from here: what is mapped from now on, the job
// has loaded meanwhile.
func (s *Set) Run() { s.running = true }

// Awaits reports whether a file has had probes on the collectives of torch.distributed.
func (s *Set) Awaits() bool { return s.awaits }

// Used is what of the probe table has an owner.
func (s *Set) Used() places.Most { return s.places.Used() }

// Found is a file that a process maps and in which there is something to probe.
type Found struct {
	Source    *plan.Source
	Plan      *plan.Plan
	Process   *process.Process
	Library   *process.Library
	Libraries []*process.Library // of the process, as far as they are known
	Again     bool               // it had no room before, and that has been said
}

// Add takes a file, whose Source is the Set's from then on, and puts in its probes that
// are in all the time. It reports whether there was room for them.
func (s *Set) Add(found *Found) (room bool, err error) {
	id, made := found.Library.ID(), found.Plan
	f := newFile(found)
	s.config.Prepare(made, found)
	if err := s.findRoom(f, ownerOf(found.Process)); err != nil {
		found.Source.Close()
		if !found.Again {
			s.config.Warn(event.Warning{TSNS: time.Now().UnixNano(), Kind: "attach", Source: found.Library.Path, Count: int64(len(made.Probes)), Detail: err.Error()})
		}
		return false, nil
	}
	if s.withoutReturns != nil {
		made.DropReturns()
	}
	for i := range made.Probes {
		planned, p := &made.Probes[i], s.at(f.base+uint32(i))
		s.awaits = s.awaits || planned.Function.Effect == catalog.AwaitsWork
		if s.demoted[planned.Group.Name] {
			p.makeDetail(1)
		}
		if err := s.config.Kernel.SetSpec(p.Index, &planned.Spec); err != nil {
			return true, fmt.Errorf("writing the probe table: %w", err)
		}
		if planned.Function.Step && s.tier(planned.Group) == catalog.Anchor {
			s.steps.probes = append(s.steps.probes, p)
		}
	}
	s.warnUnknown(made)
	f.exclusive = s.config.Shared && s.shared.onlyOurs(id)
	s.files[id] = f
	if err := s.links.attachAnchors(f); err != nil {
		return true, err
	}
	if s.config.Budget.RecordsAll() {
		if err := s.links.attach(f, f.detail, s.usable(f, catalog.Detail)); err != nil {
			return true, err
		}
	}
	if s.running && len(made.Probes) > 0 {
		s.config.Warn(event.Warning{
			TSNS: made.Begun.UnixNano(), Kind: "late", Source: found.Library.Path, Count: int64(len(made.Probes)),
			Detail: fmt.Sprintf("the job loaded it while it was recorded: calls in the first %d ms after it was seen, until its probes were in place, are not recorded", time.Since(made.Begun).Milliseconds()),
		})
	}
	return true, nil
}

// findRoom finds places for a file's probes, at the cost of who maps it.
func (s *Set) findRoom(f *File, owner places.Owner) error {
	room, err := s.places.Take(owner, len(f.plan.Probes))
	if err != nil {
		s.leaving.retireUnused() // the next may have more luck
		return fmt.Errorf("no room for its %d probes: %w; narrow --probe, or raise --limit probes or files", len(f.plan.Probes), err)
	}
	f.room, f.base = room, uint32(room.Base)
	for _, entry := range s.table.Put(f.base, f.plan.Probes, &f.trust) {
		p := &Probe{Probe: entry, file: f}
		if int(p.Index) >= len(s.own) {
			s.own = append(s.own, p)
			continue
		}
		s.own[p.Index] = p
		p.before, _ = s.config.Kernel.Count(p.Index)
		s.config.Decoder.Write(func(event.Sink) error {
			p.thinnedBefore = s.config.Budget.Thinned(p.Index)
			return nil
		})
	}
	return nil
}

// ownerOf is who pays for what a process maps.
func ownerOf(p *process.Process) places.Owner {
	return places.Owner{PID: p.PID, Start: p.StartTicks, User: process.User(p.PID)}
}

// Join puts the probes of a file that the Set has on one more process.
func (s *Set) Join(f *File, pid int, library *process.Library) error {
	f.mapped[pid] = library
	if f.exclusive {
		return nil // the link without a pid serves it already
	}
	if err := s.links.attachAnchors(f); err != nil {
		return err
	}
	if len(f.detail) == 0 {
		return nil
	}
	return s.links.attach(f, f.detail, s.attachedDetail(f))
}

// Unmap takes a process off every file, but those that it still maps.
func (s *Set) Unmap(pid int, still map[process.FileID]bool) {
	for id, f := range s.files {
		if !still[id] {
			s.links.unmap(f, pid)
		}
	}
}

// Tick lets go of the files that nobody has mapped for a while, and stops tracing those
// for everyone that others have begun to map.
func (s *Set) Tick(now time.Time) error {
	if err := s.leaving.tick(now); err != nil {
		return err
	}
	return s.shared.yield()
}

// Detach takes all probes out. The Set keeps the files: AttachAnchors puts those that are
// in all the time back.
func (s *Set) Detach() {
	var tiers []map[int]*kernel.Links
	for _, f := range s.files {
		tiers = append(tiers, f.tiers()...)
	}
	s.config.Detaching.CloseTier(tiers...)
	s.config.Detaching.Wait()
}

// AttachAnchors puts the probes in that are in all the time.
func (s *Set) AttachAnchors() error {
	for _, f := range s.files {
		if err := s.links.attachAnchors(f); err != nil {
			return err
		}
	}
	return nil
}

// Sites counts the places in the job's code at which probes are.
func (s *Set) Sites() (sites int) {
	for _, f := range s.files {
		for _, tier := range f.tiers() {
			for _, set := range tier {
				sites += set.Sites()
			}
		}
	}
	return sites
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
		w.Detail = fmt.Sprintf("variants of functions that are newer than this tracer: calls of them are not seen: %s", strings.Join(unknown, ", "))
	}
	s.config.Warn(w)
}
