package probes

import (
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
)

// Functions of a file that had no turn when it was planned have their slots, without sites.
// Their sites are found while the recording goes on.

// later puts their probes in.
type later struct{ set *Set }

// warnRest says that a file has such functions.
func (l *later) warnRest(made *plan.Plan) {
	if made.Rest == nil {
		return
	}
	l.set.config.Warn(event.Warning{
		TSNS: time.Now().UnixNano(), Kind: "incomplete", Source: "planning_cut", Count: int64(made.Rest.Len()),
		Detail: fmt.Sprintf("functions of %s without probes, since planning the others took %.1f s of a CPU: their places are looked for "+
			"meanwhile, "+
			"and their calls until then are not recorded; a narrower --probe leaves less to plan", made.Path, made.Used.Seconds()),
	})
}

// Holds reports whether a file is still the Set's, from the source that it was added with.
func (l *later) Holds(found *Found) bool {
	f := l.set.files[found.Library.ID()]
	return f != nil && f.source != nil && f.source == found.Source
}

// AddLater takes functions of a file that it Holds which have been planned meanwhile, and
// puts those in that are in all the time; the others are in the next slice.
func (l *later) AddLater(found *Found, planned *plan.Plan) error {
	s := l.set
	f := s.files[found.Library.ID()]
	s.config.Prepare(planned, found)
	if s.without != nil {
		planned.DropReturns()
	}
	which := f.plan.Take(planned)
	s.entries.renew(f, which)
	anchors, details := map[string][]int{}, []int(nil)
	for _, i := range which {
		if err := s.specify(f, i); err != nil {
			return err
		}
		switch planned := &f.plan.Probes[i]; {
		case !planned.Usable():
		case s.tier(planned.Group) == spec.Anchor:
			anchors[planned.Group.Name] = append(anchors[planned.Group.Name], i)
		default:
			details = append(details, i)
		}
	}
	for name, probes := range anchors {
		if f.anchor[name] == nil {
			f.anchor[name] = map[int]*kernel.Links{}
		}
		if err := s.attachMore(f, f.anchor[name], probes); err != nil {
			return err
		}
	}
	if !s.recordsAll {
		return nil
	}
	return s.attachMore(f, f.detail, details)
}

// TellLater says that the last functions of a file have been planned.
func (l *later) TellLater(found *Found, functions int) {
	l.set.config.Warn(event.Warning{
		TSNS: time.Now().UnixNano(), Kind: "late", Source: found.Library.Path, Count: int64(functions),
		Detail: fmt.Sprintf("functions that had no turn when the file was planned: calls in the first %.1f s after it was seen, until their "+
			"probes were in place, are not recorded",
			time.Since(found.Plan.Begun).Seconds()),
	})
}

// attachMore puts probes in beside those of a tier that are in.
func (l *links) attachMore(f *File, tier map[int]*kernel.Links, probes []int) error {
	more := map[int]*kernel.Links{}
	if err := l.attach(f, more, probes); err != nil {
		return err
	}
	for pid, set := range more {
		tier[pid] = tier[pid].Join(set)
	}
	return nil
}
