package tracer

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/places"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// Files that nobody maps any more give back what they have: their descriptor, and the
// places of their probes. A place says in the kernel's records which probe they are
// of, so it is another's only when no record of the last one can come any more: its
// links are out, the ring has run empty since, and no thread and no scope of the
// kernel's tables is in one of its calls.

const (
	// fileRest is how long a file keeps its probes after the last process that mapped
	// it, since the next one is often the same program again; and how long its places wait
	// beyond that, since rows of a slice may wait for their weights.
	fileRest = time.Minute
	// releasePace is how often that is looked at.
	releasePace = time.Second
)

// leavingFiles are those whose places are not another's yet.
type leavingFiles struct {
	at    time.Time // of the last look
	rest  time.Duration
	files []*leavingFile
	given int // how often places have become another's
}

type leavingFile struct {
	*tracedFile
	since   time.Time
	drained atomic.Bool // its links are out, and the ring has run empty since
	asked   bool        // its rows are being written
	written atomic.Bool
}

// place finds room for a file's probes, at the cost of who maps it.
func (s *Session) place(f *tracedFile, t *tracedProcess) error {
	before := len(s.probes.all())
	if err := s.probes.add(f, ownerOf(t)); err != nil {
		for _, other := range s.files { // the next may have more luck
			if !other.unusedSince.IsZero() {
				s.retire(other, time.Now())
			}
		}
		return err
	}
	for i := f.base; i < min(f.base+uint32(len(f.plan.Probes)), uint32(before)); i++ {
		p := s.probes.at(i)
		p.before, _ = s.kernel.Count(i)
		s.do(func(*decoder) { p.thinnedBefore = s.governor.Thinned(p.Index) })
	}
	return nil
}

// ownerOf is who pays for what a process maps.
func ownerOf(t *tracedProcess) places.Owner {
	return places.Owner{PID: t.process.PID, Start: t.process.StartTicks, User: process.User(t.process.PID)}
}

// counted is what a probe has counted.
func (s *Session) counted(index uint32) (bpf.CallProbeCount, error) {
	c, err := s.kernel.Count(index)
	if int(index) < len(s.probes.own) && err == nil {
		p := s.probes.at(index)
		c.Entries -= p.before.Entries
		c.Exits -= p.before.Exits
		c.Lost -= p.before.Lost
		c.Passed -= p.before.Passed
	}
	return c, err
}

// unmapFile takes a process off a file.
func (s *Session) unmapFile(f *tracedFile, pid int) {
	delete(f.mapped, pid)
	for _, tier := range f.tiers() {
		if set, ok := tier[pid]; ok && pid != 0 {
			s.detaching.Close(set)
			delete(tier, pid)
		}
	}
}

// unmapAbsent takes a process off the files that it does not map any more.
func (s *Session) unmapAbsent(t *tracedProcess, libraries []*process.Library) {
	present := make(map[process.FileID]bool, len(libraries))
	for _, l := range libraries {
		present[l.ID()] = true
	}
	t.seen.keep(present)
	for key, w := range t.waiting {
		if !present[key] {
			w.close()
			delete(t.waiting, key)
		}
	}
	for key, f := range s.files {
		if f.mapped[t.process.PID] != nil && !present[key] {
			s.unmapFile(f, t.process.PID)
		}
	}
}

// releaseFiles lets go of the files that nobody has mapped for a while, and of the
// places of those before them.
func (s *Session) releaseFiles(now time.Time) error {
	if now.Sub(s.leaving.at) < min(releasePace, s.leaving.rest) {
		return nil
	}
	s.leaving.at = now
	for _, f := range s.files {
		switch {
		case len(f.mapped) > 0:
			f.unusedSince = time.Time{}
		case f.unusedSince.IsZero():
			f.unusedSince = now
		case now.Sub(f.unusedSince) >= s.leaving.rest:
			s.retire(f, now)
		}
	}
	return s.givePlaces(now)
}

// retire takes a file's probes out. Nobody maps it: nothing of it is seen any more.
func (s *Session) retire(f *tracedFile, now time.Time) {
	delete(s.files, f.key)
	l, source := &leavingFile{tracedFile: f, since: now}, f.source
	f.source = nil
	s.leaving.files = append(s.leaving.files, l)
	s.detaching.CloseThen(func() {
		source.Close()
		s.do(func(d *decoder) { d.onceDrained = append(d.onceDrained, func() { l.drained.Store(true) }) })
	}, f.tiers()...)
}

// givePlaces gives those back that can be another's now.
func (s *Session) givePlaces(now time.Time) error {
	var open map[uint32]bool // what calls and scopes are open in the kernel's tables
	var err error
	s.leaving.files = slices.DeleteFunc(s.leaving.files, func(l *leavingFile) bool {
		switch {
		case l.written.Load():
			s.probes.places.Give(l.room)
			s.leaving.given++
			return true
		case l.asked || !l.drained.Load() || now.Sub(l.since) < s.leaving.rest || err != nil:
			return false
		}
		if open == nil {
			if open, err = s.kernel.OpenSpecs(); err != nil {
				return false
			}
		}
		for i := range l.plan.Probes {
			if open[l.base+uint32(i)] {
				return false
			}
		}
		l.asked = true
		s.leaveProbes(l)
		return false
	})
	return err
}

// leaveProbes writes the rows of a file's probes, for the last time.
func (s *Session) leaveProbes(l *leavingFile) {
	var probes []*probe
	for i := range l.plan.Probes {
		p := s.probes.at(l.base + uint32(i))
		probes = append(probes, p)
		if at := slices.Index(s.steps, p); at >= 0 {
			c, _ := s.counted(p.Index)
			s.pastSteps += c.Entries
			s.steps = slices.Delete(s.steps, at, at+1)
		}
	}
	s.do(func(d *decoder) {
		rows := make([]Probe, 0, len(probes))
		for _, p := range probes {
			if row, ok := s.probeRow(p); ok {
				row.Gone = true
				rows = append(rows, row)
			}
			p.gone = true
		}
		d.keep(d.sink.Probes(rows))
		l.written.Store(true)
	})
}
