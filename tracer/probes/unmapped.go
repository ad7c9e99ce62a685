package probes

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Files that nobody maps any more give back what they have: their descriptor, and the
// slots of their probes. A slot says in the kernel's records which probe they are
// of, so it is another's only when no record of the last one can come any more: its
// links are out, the ring has run empty since, and no thread and no scope of the
// kernel's tables is in one of its calls.

const (
	// FileRest is how long a file keeps its probes after the last process that mapped
	// it, since the next one is often the same program again; and how long its slots wait
	// beyond that, since rows of a slice may wait for their weights.
	FileRest = time.Minute
	// leavingPace is how often that is looked at.
	leavingPace = time.Second
)

// leaving are the files whose slots are not another's yet.
type leaving struct {
	set    *Set
	looked time.Time
	rest   time.Duration
	left   []*leavingFile
	freed  int // how often slots have become another's
}

type leavingFile struct {
	*File
	since time.Time
	// The goroutine that takes links out, and the decoder's, tell the manager's.
	drained atomic.Bool // its links are out, and the ring has run empty since
	written atomic.Bool // its rows are
	asked   bool        // for that
}

// SlotsFreed counts how often slots have become another's: there may be room for a file
// for which there was none.
func (v *leaving) SlotsFreed() int { return v.freed }

// Wait is how long the next Tick may wait.
func (v *leaving) Wait() time.Duration {
	if len(v.left) > 0 {
		return min(leavingPace, v.rest)
	}
	return time.Hour
}

// giveBack lets go of the files that no process has mapped for a while, and of the
// slots of those before them.
func (v *leaving) giveBack(now time.Time) error {
	if now.Sub(v.looked) < min(leavingPace, v.rest) {
		return nil
	}
	v.looked = now
	for _, f := range v.set.files {
		switch {
		case len(f.mapped) > 0:
			f.unusedSince = time.Time{}
		case f.unusedSince.IsZero():
			f.unusedSince = now
		case now.Sub(f.unusedSince) >= v.rest:
			v.retire(f, now)
		}
	}
	return v.freeSlots(now)
}

// retireUnused retires the files that no process maps, without waiting for one that may again.
func (v *leaving) retireUnused() {
	for _, f := range v.set.files {
		if !f.unusedSince.IsZero() {
			v.retire(f, time.Now())
		}
	}
}

// retire takes a file's probes out. No process maps it: nothing of it is seen any more.
func (v *leaving) retire(f *File, now time.Time) {
	delete(v.set.files, f.id)
	l, source := &leavingFile{File: f, since: now}, f.source
	f.source = nil
	v.left = append(v.left, l)
	v.set.config.Detaching.CloseThen(func() {
		source.Close()
		v.set.config.Decoder.OnceDrained(func() { l.drained.Store(true) })
	}, f.tiers()...)
}

// freeSlots gives those back that can be another's now.
func (v *leaving) freeSlots(now time.Time) error {
	var open map[uint32]bool // what calls and scopes are open in the kernel's tables
	var err error
	v.left = slices.DeleteFunc(v.left, func(l *leavingFile) bool {
		switch {
		case l.written.Load():
			v.set.slots.Free(l.room)
			v.freed++
			return true
		case l.asked || !l.drained.Load() || now.Sub(l.since) < v.rest || err != nil:
			return false
		}
		if open == nil {
			if open, err = v.set.config.Kernel.OpenSpecs(); err != nil {
				return false
			}
		}
		for i := range l.plan.Probes {
			if open[l.base+uint32(i)] {
				return false
			}
		}
		l.asked = true
		v.writeRows(l)
		return false
	})
	return err
}

// writeRows writes the rows of a file's probes, for the last time.
func (v *leaving) writeRows(l *leavingFile) {
	s := v.set
	var probes []*Probe
	for i := range l.plan.Probes {
		p := s.at(l.base + uint32(i))
		probes = append(probes, p)
		if at := slices.Index(s.steps.probes, p); at >= 0 {
			c, _ := s.counted(p.Index)
			s.steps.past += c.Entries
			s.steps.probes = slices.Delete(s.steps.probes, at, at+1)
		}
	}
	s.config.Decoder.Write(func(sink event.Sink) error {
		rows := make([]event.Probe, 0, len(probes))
		for _, p := range probes {
			if row, ok := s.Accounts().row(p); ok {
				row.Gone = true
				rows = append(rows, row)
			}
			p.gone = true
		}
		defer l.written.Store(true)
		return sink.Write(&event.Batch{Probes: rows})
	})
}
