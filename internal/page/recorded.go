package page

import (
	"context"
	"slices"
	"sync"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/page/pyramid"
)

// recorded are the stretches in which a process's calls were recorded, where that was not always: what lies between is
// not known.
type recorded struct {
	PID    int32      `json:"pid"`
	Within [][2]int64 `json:"within"`
}

// recordedTimes are those of all processes, found once.
type recordedTimes struct {
	mu    sync.Mutex
	known bool
	all   []recorded
}

// recordedSQL has the slices, and the stretches of calls outside of slices: the first calls of a run may be recorded
// before there are slices. There calls are all that tells when calls were recorded: a pause of 50 ms between them is none.
const recordedSQL = `SELECT pid, begin_ns, end_ns, 1 FROM slice WHERE end_ns > begin_ns
	UNION ALL SELECT pid, min(ts_ns), max(ts_ns + coalesce(duration_ns, 0)), 50000000 FROM span
	WHERE layer = 'op' AND slice_id IS NULL AND (session_id, pid) IN (SELECT (session_id, pid) FROM slice) GROUP BY pid, ts_ns // 50000000
	ORDER BY 1, 2`

func (s *edition) recordedTimes(ctx context.Context, db *dataset.DB) ([]recorded, error) {
	f := &s.recorded
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known {
		return f.all, nil
	}
	rows, err := db.Query(ctx, recordedSQL)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []recorded
	for rows.Next() {
		var pid int32
		var begin, end, gap int64
		if err := rows.Scan(&pid, &begin, &end, &gap); err != nil {
			return nil, err
		}
		begin, end = begin-s.lanes.p.Base(), end-s.lanes.p.Base()
		if n := len(all); n == 0 || all[n-1].PID != pid {
			all = append(all, recorded{PID: pid, Within: [][2]int64{}})
		}
		all[len(all)-1].join(begin, end, gap)
	}
	f.all, f.known = all, rows.Err() == nil
	return all, rows.Err()
}

// join adds a stretch, to the last one if the pause between them is shorter than gap. Stretches come by their begin.
func (r *recorded) join(begin, end, gap int64) {
	if n := len(r.Within); n > 0 && begin-r.Within[n-1][1] < gap {
		r.Within[n-1][1] = max(r.Within[n-1][1], end)
		return
	}
	r.Within = append(r.Within, [2]int64{begin, end})
}

// inWindow cuts the stretches to a window. Pauses shorter than a bin are not drawn.
func inWindow(all []recorded, w pyramid.Window) []recorded {
	cut := []recorded{}
	for _, r := range all {
		part := recorded{PID: r.PID, Within: [][2]int64{}}
		first, _ := slices.BinarySearchFunc(r.Within, w.From, func(s [2]int64, from int64) int {
			if s[1] < from {
				return -1
			}
			return 1
		})
		for _, s := range r.Within[first:] {
			if s[0] > w.Until {
				break
			}
			part.join(s[0], s[1], pyramid.Width(w.Level))
		}
		cut = append(cut, part)
	}
	return cut
}
