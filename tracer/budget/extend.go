package budget

import (
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/weights"
)

// extend puts in what the job has begun to use since the last look, and as many more
// probes as there is room for. From there on it is another slice: in the one before,
// those calls went unseen.
func (s *slicer) extend(room int) error {
	now := time.Now()
	if room == 0 && now.Sub(s.strata.learnt) < s.strata.learnEvery(now) {
		return nil
	}
	s.strata.learnt = now
	if _, fresh := s.probes.Learn(); len(fresh) > 0 {
		s.strata.fresh = now
	} else if room == 0 {
		return nil
	}
	before := s.probes.Hits(s.attached)
	more, err := s.probes.Extend(s.attached, room)
	if err != nil || len(more) == 0 {
		return err
	}
	s.attached = append(s.attached, more...)
	for index, h := range s.probes.Hits(more) {
		s.before[index] = h
	}
	if s.strata.fresh.Equal(now) {
		s.cut(before)
	}
	return nil
}

// cut ends an interval and begins the next one, with the probes in.
func (s *slicer) cut(counts map[uint32]Hits) {
	m := s.mark()
	s.closeInterval(m, counts, false)
	s.openInterval(m)
}

// interval is a part of a slice within which the same probes are in.
type interval struct {
	on     weights.Mark
	before map[uint32]Hits // counters when it began
	open   bool
}

// openInterval begins one.
func (s *slicer) openInterval(on weights.Mark) {
	s.interval = interval{on, s.probes.Hits(s.attached), true}
	s.ledger.Open(on, s.epoch, s.attached)
}

// closeInterval ends the present interval.
func (s *slicer) closeInterval(off weights.Mark, counts map[uint32]Hits, last bool) {
	i := &s.interval
	if !i.open {
		return
	}
	i.open = false
	seen := since(i.before, counts)
	processes := time.Duration(s.account.busyProcesses())
	saw := weights.Seen{Calls: recorded(seen), Hits: s.account.price(seen, off.At.Sub(i.on.At)*processes) / processes, Last: last}
	if last {
		saw.Stall = s.account.stall(s.attached)
	}
	s.ledger.Close(off, saw)
}

// recorded is how many calls of each probe were.
func recorded(seen map[uint32]Hits) map[uint32]uint64 {
	calls := make(map[uint32]uint64, len(seen))
	for index, h := range seen {
		calls[index] = h.Recorded
	}
	return calls
}
