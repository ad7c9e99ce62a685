package calltree

import (
	"context"
	"math"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// mostSeen bounds what is kept of steps, 72 bytes each: beyond it no interval is given.
const mostSeen = 2 << 20

func (l *loader) readSlices() (err error) {
	l.root.slices, err = readSlices(l.ctx, l.db)
	return err
}

// readSlices reads table slice: nil of a dataset without one, which was recorded whole, and of a part of the time, of which
// nothing says how many steps it had.
func readSlices(ctx context.Context, db *dataset.DB) (*slicing, error) {
	rows, err := db.Query(ctx, `SELECT session_id, slice_id, pid, probe_group, phase, begin_ns, steps, recorded > 0,
			CASE WHEN unit <> 'steps' THEN greatest(steps, 1) WHEN steps > 0 THEN least(steps, recorded) ELSE recorded END,
			CASE WHEN unit = 'steps' THEN recorded ELSE greatest(steps, 1) END,
			CASE WHEN unit = 'steps' THEN represented ELSE represented * greatest(steps, 1) / nullif(recorded, 0) END,
			represented > 0, unit = 'steps', unit = 'time'
		FROM slice ORDER BY begin_ns, slice_id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := &slicing{map[Stratum][]*Slice{}, map[rowKey]*Slice{}, map[Stratum]bool{}}
	for rows.Next() {
		var s Slice
		var id int64
		var recorded, seen, represented *float64
		var saw, stands bool
		if err := rows.Scan(&s.Of.Session, &id, &s.Of.PID, &s.Of.Group, &s.Of.Phase, &s.Begin, &s.Steps, &saw, &recorded, &seen, &represented,
			&stands, &s.OfSteps, &s.OfTime); err != nil {
			return nil, err
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
	if len(all.byID) == 0 || db.Part().Windowed() {
		return nil, rows.Err()
	}
	return all, rows.Err()
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

// Slices are those of a dataset: they tell how sure sums of rows are that were recorded in them.
type Slices struct{ of *slicing }

// ReadSlices is nil where they say nothing: of a dataset that was recorded whole, and of a part of the time.
func ReadSlices(ctx context.Context, db *dataset.DB) (*Slices, error) {
	all, err := readSlices(ctx, db)
	if all == nil || err != nil {
		return nil, err
	}
	return &Slices{all}, nil
}

// NewSlices are the slices of one stratum, in order of time.
func NewSlices(all []*Slice) *Slices {
	s := &slicing{map[Stratum][]*Slice{}, map[rowKey]*Slice{}, map[Stratum]bool{}}
	for _, slice := range all {
		s.strata[slice.Of] = append(s.strata[slice.Of], slice)
	}
	return &Slices{s}
}

// At is the slice with an id; nil if there is none, dataset.Absent included.
func (a *Slices) At(session string, id int64) *Slice { return a.of.byID[rowKey{session, id}] }

// Sum adds up the values of rows.
type Sum struct {
	metric Metric
	Value  float64 // of all calls that the rows represent
	Rows   float64
}

// Add takes the value of a row that represents weight calls; the slice is nil where it was recorded in none, the step 0
// where the slice cut it. It returns by how many steps the sum's memory has grown.
func (s *Sum) Add(at *Slice, step int32, value, weight float64) int {
	before := len(s.metric.seen)
	s.metric.note(at, step, value, weight)
	s.Value, s.Rows = s.Value+value*weight, s.Rows+1
	return len(s.metric.seen) - before
}

// Variance is how sure the sum is, and how many slices have rows of it: NaN where a single step or slice does not tell.
// It is that of a normal distribution with the same 95 % interval: few slices make it larger.
func (a *Slices) Variance(s *Sum) (variance float64, n int) {
	var last *Slice
	rows := slices.Clone(s.metric.seen)
	slices.SortStableFunc(rows, seen.compare)
	for _, r := range rows {
		if r.slice != nil && r.slice != last {
			n, last = n+1, r.slice
		}
	}
	interval, estimated := a.of.interval(rows)
	if !estimated {
		return 0, n
	}
	reach := (interval.High - s.Value) / 1.96
	return math.Pow(reach, 2), n
}
