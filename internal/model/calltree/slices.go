package calltree

import "github.com/ebpfprof/ebpfprof/internal/dataset"

// mostSeen bounds what is kept of steps, 72 bytes each: beyond it no interval is told.
const mostSeen = 2 << 20

// readSlices reads table slice. A dataset without one was recorded whole.
func (l *loader) readSlices() error {
	rows, err := l.db.Query(l.ctx, `SELECT session_id, slice_id, pid, probe_group, phase, begin_ns, steps, recorded > 0,
			CASE WHEN unit <> 'steps' THEN greatest(steps, 1) WHEN steps > 0 THEN least(steps, recorded) ELSE recorded END,
			CASE WHEN unit = 'steps' THEN recorded ELSE greatest(steps, 1) END,
			CASE WHEN unit = 'steps' THEN represented ELSE represented * greatest(steps, 1) / nullif(recorded, 0) END,
			represented > 0, unit = 'steps', unit = 'time'
		FROM slice ORDER BY begin_ns, slice_id`)
	if err != nil {
		return err
	}
	defer rows.Close()
	all := &slicing{map[Stratum][]*Slice{}, map[rowKey]*Slice{}, map[Stratum]bool{}}
	for rows.Next() {
		var s Slice
		var id int64
		var recorded, seen, represented *float64
		var saw, stands bool
		if err := rows.Scan(&s.Of.Session, &id, &s.Of.PID, &s.Of.Group, &s.Of.Phase, &s.Begin, &s.Steps, &saw, &recorded, &seen, &represented, &stands, &s.OfSteps, &s.OfTime); err != nil {
			return err
		}
		switch {
		case saw && recorded != nil && seen != nil && represented != nil:
			s.Recorded, s.Saw, s.Represented = *recorded, *seen, *represented
			kept := s
			all.strata[s.Of], all.byID[rowKey{s.Of.Session, id}] = append(all.strata[s.Of], &kept), &kept
		case stands:
			all.unseen[s.Of] = true
		}
	}
	// Of a part of the time nothing says how many steps it had.
	if len(all.byID) > 0 && !l.db.Part().Windowed() {
		l.root.slices = all
	}
	return rows.Err()
}

// slice is the slice and the step of it that a row was recorded in; nil where it was in none.
func (l *loader) slice(session string, id, step int64) (*Slice, int32) {
	if l.root.slices == nil || id == dataset.Absent {
		return nil, 0
	}
	if step == dataset.Absent {
		step = 0
	}
	return l.root.slices.byID[rowKey{session, id}], int32(step)
}

// saw counts a row's value where it was seen, as long as there is room.
func (l *loader) saw(m *Metric, s *Slice, step int32, value, weight float64) {
	if l.root.slices == nil {
		return
	}
	before := len(m.seen)
	m.note(s, step, value, weight)
	if l.seen += len(m.seen) - before; l.seen > mostSeen {
		l.root.slices = nil
	}
}
