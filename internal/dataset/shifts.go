package dataset

import (
	"context"
	"database/sql/driver"
	"fmt"
	"maps"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/dataset/keys"
)

// recordingsSQL are the numbers that each recording uses, those of hosts that have a
// row of process, in order of their beginnings.
const recordingsSQL = `SELECT p.session_id, p.pids, coalesce(least(s.low, l.low), 0), coalesce(greatest(s.high, l.high), 0)
FROM (SELECT session_id, list(DISTINCT pid::BIGINT) AS pids, min(started_ns) AS started FROM process GROUP BY 1) p
LEFT JOIN (SELECT session_id, min(span_id) AS low, max(span_id) AS high FROM span GROUP BY 1) s USING (session_id)
LEFT JOIN (SELECT session_id, min(slice_id) AS low, max(slice_id) AS high FROM slice GROUP BY 1) l USING (session_id)
ORDER BY p.started, p.session_id`

// Recordings are the recordings of the dataset with the numbers that they use.
func (db *DB) Recordings(ctx context.Context) (all []keys.Recording, err error) {
	err = db.Each(ctx, recordingsSQL, func(v []driver.Value) error {
		var r keys.Recording
		r.Session, _ = v[0].(string)
		pids, _ := v[1].([]any)
		for _, pid := range pids {
			n, _ := pid.(int64)
			r.PIDs = append(r.PIDs, n)
		}
		r.Low, _ = v[2].(int64)
		r.High, _ = v[3].(int64)
		all = append(all, r)
		return nil
	})
	return all, err
}

// chooseShifts looks whether recordings that lie in one dataset use the same numbers, as those
// that were copied into one directory do. What is asked of the dataset goes by process ids: each
// process has one of its own then, in SQL and in Scan.
func (db *DB) chooseShifts(ctx context.Context) error {
	var sessions int
	if err := db.Row(ctx, "SELECT count(DISTINCT session_id) FROM process", nil, &sessions); err != nil || sessions < 2 {
		return err
	}
	recordings, err := db.Recordings(ctx)
	if err != nil {
		return err
	}
	if db.shifts, err = keys.For(recordings); err != nil {
		return err
	}
	for _, session := range slices.Sorted(maps.Keys(db.shifts)) {
		if by := db.shifts[session].PID; by > 0 {
			db.warnings = append(db.warnings, fmt.Sprintf("process ids of recording %s are those of another in the dataset: they are "+
				"shown %d higher", session, by))
		}
	}
	return nil
}

// Shift is what is added to the numbers that the files have of a recording.
func (db *DB) Shift(session string) keys.Shift { return db.shifts[session] }
