package diff

import (
	"context"
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// The host hands work to a device and goes on. Where it is ahead of the device when the
// steps end, its own times say how fast it launches, and not how long a step takes: there a
// step lasts from when the work of the one before was done until its own is; the first,
// where it is the only one, from its begin.

// doneSQL is when the work was done that each step launched, from whatever thread.
const doneSQL = `
	SELECT t.step_id, max(d.ts_ns + d.duration_ns)
	FROM (FROM good_span WHERE ` + onDevice + ` AND pid = %[1]d) d
	JOIN (SELECT session_id, span_id AS launch_id, ts_ns AS at FROM good_span WHERE pid = %[1]d AND layer <> 'device') l
	USING (session_id, launch_id)
	ASOF JOIN (FROM timeline_step WHERE pid = %[1]d AND tid = %[2]d) t ON l.at >= t.begin_ns
	WHERE l.at < t.until_ns GROUP BY ALL`

// completions learns when the steps' work was done.
func (s *Side) completions(ctx context.Context, db *dataset.DB, w window, all []timeline.Step) error {
	rows, err := db.Query(ctx, fmt.Sprintf(doneSQL, w.pid, w.tid))
	if err != nil {
		return err
	}
	defer rows.Close()
	ends := map[int64]int64{}
	for rows.Next() {
		var id, end int64
		if err := rows.Scan(&id, &end); err != nil {
			return err
		}
		ends[id] = end
	}
	if err := rows.Err(); err != nil || len(ends) == 0 {
		return err
	}
	var done int64
	for i, step := range all {
		before := done
		done = max(done, step.End, ends[step.ID])
		switch {
		case len(all) == 1:
			s.Done = append(s.Done, float64(done-step.Begin)/1e6)
		case i > 0 && all[i-1].Until() == step.Begin:
			s.Done = append(s.Done, float64(done-before)/1e6)
		}
	}
	late := float64(done-all[len(all)-1].Until()) / 1e6
	s.Behind = late > pairNoise/100*steps.Mean(s.Periods)
	return nil
}

// done is the side by when its steps' work was done.
func (s *Side) done() *Side {
	if len(s.Repeats) > 0 {
		var all []*Side
		for _, r := range s.Repeats {
			all = append(all, r.done())
		}
		return Join(all[0], all[1:]...)
	}
	by := *s
	by.Periods = s.Done
	return &by
}

// byTheDevice are the sides by when their steps' work was done, where a device of one was
// behind its host; what says so.
func byTheDevice(before, after *Side) (b, a *Side, what Fact) {
	every := slices.Concat(before.all(), after.all())
	behind := slices.ContainsFunc(every, func(s *Side) bool { return s.Behind })
	if !behind || slices.ContainsFunc(every, func(s *Side) bool { return len(s.Done) == 0 }) {
		return before, after, Fact{}
	}
	const text = "timed by when their work on the device was done: the host was ahead of it"
	return before.done(), after.done(), Fact{"steps", text, text, true}
}
