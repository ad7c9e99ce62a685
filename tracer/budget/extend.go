package budget

import "time"

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
	s.ledger.open(m, s.epoch, s.attached)
}

// closeInterval ends the present interval.
func (s *slicer) closeInterval(off sliceMark, counts map[uint32]Hits, last bool) {
	i := s.ledger.present()
	if i == nil || i.over {
		return
	}
	i.off, i.over, i.last = off, true, last
	i.seen = since(i.before, counts)
	processes := time.Duration(s.account.busyProcesses())
	i.cost = s.account.price(i.seen, off.at.Sub(i.on.at)*processes) / processes
	if last {
		i.stall = s.account.stall(s.attached)
	}
	i.processes = unite(i.processes, s.job.Processes())
}
