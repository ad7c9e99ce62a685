package timeline

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// ErrNoScope is returned for a scope that the recording has not, or not as often.
var ErrNoScope = errors.New("no such scope")

// Scope is the instance (from 0, in order of time) of a scope whose name has the
// text in it, as a stretch to look at: of rank where that is not nil.
func Scope(ctx context.Context, db *dataset.DB, text string, instance int, rank *int) (Thread, Step, error) {
	var t Thread
	var begin, duration int64
	var name string
	var of sql.NullInt64
	var count int
	where, args := "", []any{text}
	if rank != nil {
		where, args = " AND p.rank = ?", append(args, *rank)
	}
	err := db.Row(ctx, `SELECT count(*) FROM span s LEFT JOIN process p USING (session_id, pid)
		WHERE s.layer = 'scope' AND contains(s.name, ?) AND s.duration_ns > 0`+where, args, &count)
	if err != nil {
		return t, Step{}, err
	}
	if instance >= count {
		return t, Step{}, fmt.Errorf("%w: %d with %q in their names were recorded, and instance %d was asked for (they count from 0)",
			ErrNoScope, count, text, instance)
	}
	err = db.Row(ctx, `SELECT s.pid, s.tid, p.rank, s.name, s.ts_ns, s.duration_ns FROM span s LEFT JOIN process p USING (session_id, pid)
		WHERE s.layer = 'scope' AND contains(s.name, ?) AND s.duration_ns > 0`+where+`
		ORDER BY p.rank NULLS LAST, s.ts_ns LIMIT 1 OFFSET ?`, append(args, instance), &t.PID, &t.TID, &of, &name, &begin, &duration)
	t.setRank(of)
	return t, stretch(name, begin, duration), err
}

// Recording is all of the process that has the most on its threads, as a stretch,
// with the thread of its that launches the most work, else the one with the most
// calls: what there is to look at where nothing repeats.
func Recording(ctx context.Context, db *dataset.DB, rank *int) (Thread, Step, error) {
	var t Thread
	var of, begin, end sql.NullInt64
	where := ""
	var args []any
	if rank != nil {
		where, args = " AND p.rank = ?", append(args, *rank)
	}
	err := db.Row(ctx, `SELECT s.pid, s.tid, any_value(p.rank) FROM span s LEFT JOIN process p USING (session_id, pid)
		WHERE s.layer NOT IN ('device', 'os')`+where+` GROUP BY s.session_id, s.pid, s.tid
		ORDER BY count(*) FILTER (s.layer = 'runtime' AND s.category = 'launch') DESC, count(*) DESC, s.tid LIMIT 1`, args, &t.PID, &t.TID, &of)
	if errors.Is(err, sql.ErrNoRows) {
		return t, Step{}, errors.New("there is no call on any thread: nothing to make a path of")
	}
	if err != nil {
		return t, Step{}, err
	}
	err = db.Row(ctx, `SELECT min(ts_ns), max(ts_ns + duration_ns) FROM span
		WHERE pid = ? AND layer NOT IN ('device', 'os', 'python') AND duration_ns >= 0`, []any{t.PID}, &begin, &end)
	t.setRank(of)
	return t, stretch("the recording", begin.Int64, end.Int64-begin.Int64), err
}

func stretch(name string, begin, duration int64) Step {
	return Step{Step: steps.Step{Begin: begin, End: begin + duration, Period: duration}, Name: name, Whole: true}
}

func (t *Thread) setRank(rank sql.NullInt64) {
	if rank.Valid {
		n := int(rank.Int64)
		t.Rank = &n
	}
}
