package tracer

import (
	"maps"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/places"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/tensor"
)

// tracedFile is one library file and the probes that are on it. Processes that
// map the same inode share it.
type tracedFile struct {
	key    process.FileID
	source *plan.Source
	plan   *plan.Plan
	base   uint32 // index of the file's first probe
	room   places.Room
	// unusedSince is when it was first seen that no traced process maps the file.
	unusedSince time.Time
	// firstPID is the process in which the file was found first.
	firstPID int32
	// mapped is the library as each traced process maps it.
	mapped map[int]*process.Library
	// exclusive: only traced processes map the file, so that one link without a
	// pid serves them and every child from its first instruction on.
	exclusive bool
	anchor    map[string]map[int]*kernel.Links // by group and pid, 0 when exclusive
	detail    map[int]*kernel.Links            // by pid
	trust     tensor.Trust                     // in the layout of its tensors; the decoder's
}

// tiers lists every set of links that is on the file.
func (f *tracedFile) tiers() []map[int]*kernel.Links {
	return append(slices.Collect(maps.Values(f.anchor)), f.detail)
}

// pids are whom to attach to: everyone, or each traced process.
func (f *tracedFile) pids() []int {
	if f.exclusive {
		return []int{0}
	}
	pids := make([]int, 0, len(f.mapped))
	for pid := range f.mapped {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids
}

// runner is the process that putting probes in for a pid stalls most: itself,
// or for 0 the first of those that map the file.
func (f *tracedFile) runner(pid int) int {
	if pid != 0 || len(f.mapped) == 0 {
		return pid
	}
	return slices.Min(slices.Collect(maps.Keys(f.mapped)))
}

// usable lists a file's probes of one tier that can be attached.
func (s *Session) usable(f *tracedFile, tier catalog.Tier) []int {
	var probes []int
	for i := range f.plan.Probes {
		if p := &f.plan.Probes[i]; p.Usable() && s.tier(p.Group) == tier {
			probes = append(probes, i)
		}
	}
	return probes
}

// anyUsable reports whether any file has a usable probe of a tier.
func (s *Session) anyUsable(tier catalog.Tier) bool {
	for _, f := range s.files {
		for i := range f.plan.Probes {
			if p := &f.plan.Probes[i]; p.Usable() && s.tier(p.Group) == tier {
				return true
			}
		}
	}
	return false
}

func (f *tracedFile) report(probes *probeSet) LibraryReport {
	r := LibraryReport{Path: f.plan.Path, Planned: len(f.plan.Probes)}
	for i := range f.plan.Probes {
		switch {
		case probes.at(f.base + uint32(i)).attached:
			r.Attached++
		case !f.plan.Probes[i].Usable():
			r.Skipped++
		}
	}
	return r
}
