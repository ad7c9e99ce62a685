package probes

import (
	"maps"
	"math"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// What is put in for a slice: the detail probes of functions that the job is known to use.

// sliced are the probes that slices are made of.
type sliced struct{ s *Set }

// Attach puts detail probes in.
func (d sliced) Attach(indices []uint32) error {
	for f, probes := range d.s.byFile(indices) {
		d.enter(f, probes)
	}
	return d.attach(indices)
}

func (d sliced) attach(indices []uint32) error {
	for f, probes := range d.s.byFile(indices) {
		if err := d.s.attach(f, f.detail, probes); err != nil {
			return err
		}
	}
	return nil
}

// enter notes that some probes of a file are in slices from now on.
func (d sliced) enter(f *File, probes []int) {
	now := time.Now().UnixNano()
	for _, i := range probes {
		if p := d.s.at(f.base + uint32(i)); p.firstIn == 0 {
			p.firstIn = now
		}
	}
}

// AttachAll puts all of them in, for good, and those of files that come later.
func (d sliced) AttachAll() error {
	d.s.recordsAll = true
	return d.attach(counted(d).Sliced())
}

// Detach takes them out.
func (d sliced) Detach() {
	tiers := make([]map[int]*kernel.Links, 0, len(d.s.files))
	for _, f := range d.s.files {
		tiers = append(tiers, f.detail)
	}
	d.s.config.Detaching.CloseTier(tiers...)
}

// Learn looks which of them the job is known to use: how many, and which are new.
// Those whose function tells it by a guard byte are read from the processes'
// memory; the others, a handful, count as used.
func (d sliced) Learn() (known int, fresh []uint32) {
	use := func(p *Probe, unusedUntil int64) {
		if !p.used {
			p.used, p.unusedUntil, fresh = true, unusedUntil, append(fresh, p.Index)
		}
	}
	for _, f := range d.s.files {
		before, now := f.looked.all(f.mapped), time.Now().UnixNano()
		for pid, library := range f.mapped {
			bias, ok := library.Bias(f.plan.ELF)
			if !ok {
				continue
			}
			used, err := plan.UsedProbes(pid, bias, f.plan.Probes)
			if err != nil {
				continue // it exited, or its next reading will tell
			}
			f.looked.note(pid, now)
			f.expected.decide(len(used) > 0)
			for _, i := range used {
				use(d.s.at(f.base+uint32(i)), before)
			}
		}
		for _, i := range d.s.usable(f, spec.Detail) {
			p := d.s.at(f.base + uint32(i))
			if p.Planned.UsedFlag == 0 {
				use(p, 0)
			}
			if !p.used && !p.expected && f.expected.is(p.Planned.Call.Name) {
				p.expected, fresh = true, append(fresh, p.Index)
			}
			if p.used {
				known++
			}
		}
	}
	return known, fresh
}

// looks are when it was looked which functions each process uses, nanoseconds since the
// Unix epoch.
type looks struct{ at map[int]int64 }

func (l *looks) note(pid int, at int64) {
	if l.at == nil {
		l.at = map[int]int64{}
	}
	l.at[pid] = at
}

// all is since when it has been known of all processes that map a file, 0 where one was never
// looked at. Of the others it forgets what it knew.
func (l *looks) all(mapped map[int]*process.Library) (at int64) {
	at = math.MaxInt64
	for pid := range mapped {
		at = min(at, l.at[pid])
	}
	if len(mapped) == 0 {
		at = 0
	}
	maps.DeleteFunc(l.at, func(pid int, _ int64) bool { return mapped[pid] == nil })
	return at
}

// InUse lists those that a slice attaches, with those that are expected.
func (d sliced) InUse() (used []uint32) {
	for _, f := range d.s.files {
		for _, i := range d.s.usable(f, spec.Detail) {
			if p := d.s.at(f.base + uint32(i)); p.used || f.expected.is(p.Planned.Call.Name) {
				used = append(used, p.Index)
			}
		}
	}
	return used
}

// Extend puts in what the job has begun to use since the last look, whose
// first calls went unseen, what is expected (expected.go), and as many of the rest as
// the budget has room for, so that there is nothing left to begin.
func (d sliced) Extend(attached []uint32, room int) (news []uint32, err error) {
	known := map[uint32]bool{}
	for _, index := range attached {
		known[index] = true
	}
	for _, f := range d.s.files {
		var more, late, soon []int
		for _, i := range d.s.usable(f, spec.Detail) {
			switch p := d.s.at(f.base + uint32(i)); {
			case known[p.Index]:
			case p.used:
				late = append(late, i)
			case f.expected.is(p.Planned.Call.Name):
				soon = append(soon, i)
			case len(more) < room:
				more = append(more, i)
			}
		}
		room -= len(more)
		d.warnLate(f, late)
		if more = append(append(more, late...), soon...); len(more) == 0 {
			continue
		}
		d.enter(f, more)
		if err := d.s.attachMore(f, f.detail, more); err != nil {
			return news, err
		}
		for _, i := range more {
			news = append(news, f.base+uint32(i))
		}
	}
	return news, nil
}

// warnLate says which functions had calls before their probes were in.
func (d sliced) warnLate(f *File, late []int) {
	if len(late) == 0 {
		return
	}
	names := make([]string, 0, len(late))
	for _, i := range late {
		names = append(names, f.plan.Probes[i].Call.Name)
	}
	d.s.config.Warn(event.Warning{
		TSNS: time.Now().UnixNano(), Kind: "late", Source: f.plan.Path, Count: int64(len(late)),
		Detail: "the job has just begun to use these, and their first calls are not recorded: " + strings.Join(names, ", "),
	})
}
