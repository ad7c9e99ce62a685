// Package evidence reads what a hang is judged by, and what each rank did before it, from
// datasets, which may still be written, and from a store to which agents have sent it. It
// owns the queries; the verdict is package hang's, the dumps are package flightrecorder's.
package evidence

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/answer/hang"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// Analyse says what waits in the datasets of one job, of several nodes perhaps.
func Analyse(ctx context.Context, dbs ...*dataset.DB) (*hang.Report, error) {
	var all []*hang.Recording
	for _, db := range dbs {
		r, err := readWaits(ctx, db)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return hang.Analyse(all...), nil
}

const ranksQuery = `SELECT c.communicator, coalesce(nullif(c.description, ''), c.name, ''), c.pid, c.rank, c.ranks, c.issued_number,
	coalesce(c.issued_name, ''), p.ended_ns IS NOT NULL
FROM communicator c LEFT JOIN (SELECT pid, max(ended_ns) AS ended_ns FROM process GROUP BY pid) p USING (pid)
WHERE c.communicator IS NOT NULL AND c.rank IS NOT NULL AND c.ranks IS NOT NULL
ORDER BY c.communicator, c.rank, c.issued_number NULLS FIRST`

const openQuery = `SELECT communicator, pid, min(sequence_number), max(seen_ns - ts_ns) / 1e9, max(coalesce(python_stack_id, 0)),
	coalesce(arg_min(name, sequence_number) FILTER (category = 'work'), min(name))
FROM open_call WHERE communicator IS NOT NULL AND sequence_number IS NOT NULL GROUP BY ALL`

const processesQuery = `SELECT pid, max(rank), count(framework) > 0 FROM process WHERE ended_ns IS NULL GROUP BY pid
	ORDER BY max(rank) NULLS LAST, pid`

// readWaits reads what a dataset has of groups, waits and threads that stood still.
func readWaits(ctx context.Context, db *dataset.DB) (*hang.Recording, error) {
	r := &hang.Recording{
		Waits: map[hang.Of]hang.Wait{},
		PlaceOf: func(stack int64) string {
			return place(ctx, db, "SELECT frames FROM stack WHERE stack_id = ? LIMIT 1", stack)
		},
		LastPlace: func(pid int64) string {
			return place(ctx, db, "SELECT frames FROM sample JOIN stack USING (stack_id) WHERE pid = ? AND tid = pid ORDER BY ts_ns "+
				"DESC LIMIT 1", pid)
		},
	}
	if err := each(ctx, db, "SELECT coalesce(any_value(host), '') FROM session",
		func(rows *sql.Rows) error { return rows.Scan(&r.Host) }); err != nil {
		return nil, err
	}
	if err := each(ctx, db, ranksQuery, func(rows *sql.Rows) error {
		var m hang.Member
		var number sql.NullInt64
		if err := rows.Scan(&m.Group, &m.Name, &m.PID, &m.Rank, &m.Ranks, &number, &m.Collective, &m.Ended); err != nil {
			return err
		}
		m.Number = present(number)
		r.Members = append(r.Members, m)
		return nil
	}); err != nil {
		return nil, err
	}
	if err := each(ctx, db, openQuery, func(rows *sql.Rows) error {
		var of hang.Of
		var w hang.Wait
		if err := rows.Scan(&of.Group, &of.PID, &w.Number, &w.Seconds, &w.Stack, &w.Collective); err != nil {
			return err
		}
		r.Waits[of] = w
		return nil
	}); err != nil {
		return nil, err
	}
	if err := each(ctx, db, processesQuery, func(rows *sql.Rows) error {
		var p hang.Known
		var rank sql.NullInt64
		var framework bool
		if err := rows.Scan(&p.PID, &rank, &framework); err != nil {
			return err
		}
		if p.Rank = present(rank); framework {
			r.Processes = append(r.Processes, p)
		} else {
			r.Others = append(r.Others, p)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	var err error
	r.Threads, err = readThreads(ctx, db)
	return r, err
}

func present(n sql.NullInt64) *int64 {
	if !n.Valid {
		return nil
	}
	return &n.Int64
}

var threadsQuery = fmt.Sprintf(`SELECT t.pid, t.tid, coalesce(n.name, ''), coalesce(t.syscall, ''), (t.seen_ns - t.since_ns) / 1e9,
	coalesce(t.state, ''), coalesce(t.stack_id, 0), coalesce(s.status, '') = 'complete', CAST(to_json(list_transform(s.frames[1:%d],
	lambda f: {kind: f.kind, "function": coalesce(f."function", ''), file: coalesce(f.file, ''), line: coalesce(f.line, 0),
	module: coalesce(f.module, '')})) AS VARCHAR)
FROM still_thread t LEFT JOIN (SELECT pid, tid, any_value(name) AS name FROM thread GROUP BY ALL) n USING (pid, tid)
LEFT JOIN (SELECT stack_id, any_value(frames) AS frames, any_value(status) AS status FROM stack
	WHERE stack_id IN (SELECT stack_id FROM still_thread) GROUP BY stack_id) s USING (stack_id)
ORDER BY t.pid, t.tid <> t.pid, t.tid`, hang.MostFrames)

// readThreads reads where the threads of each process stood.
func readThreads(ctx context.Context, db *dataset.DB) (map[int64][]hang.Thread, error) {
	threads := map[int64][]hang.Thread{}
	err := each(ctx, db, threadsQuery, func(rows *sql.Rows) error {
		var pid, tid int64
		var t hang.Thread
		var still sql.NullFloat64
		var frames sql.NullString
		if err := rows.Scan(&pid, &tid, &t.Name, &t.Syscall, &still, &t.State, &t.Stack, &t.Whole, &frames); err != nil {
			return err
		}
		if frames.Valid { // else its stack is not on disk yet
			if err := json.Unmarshal([]byte(frames.String), &t.Frames); err != nil {
				return err
			}
		}
		t.Main, t.TIDs = tid == pid, []int64{tid}
		if still.Valid {
			t.Still = &still.Float64
		}
		threads[pid] = append(threads[pid], t)
		return nil
	})
	for pid := range threads {
		threads[pid] = hang.Together(threads[pid])
	}
	return threads, err
}

// place is the innermost frame of the job's own code in the stack that a query finds.
func place(ctx context.Context, db *dataset.DB, query string, argument int64) string {
	var text sql.NullString
	err := db.Row(ctx, `SELECT f.file || coalesce(':' || f.line, '') || ' ' || coalesce(f."function", '')
		FROM (SELECT unnest(frames) AS f, generate_subscripts(frames, 1) AS depth FROM (`+query+`))
WHERE f.kind = 'python' ORDER BY f.file LIKE '%-packages/%' OR f.file LIKE '%/lib/python3%' OR f.file LIKE '<%', depth LIMIT 1`,
		[]any{argument}, &text)
	if err != nil {
		return "" // no such stack yet
	}
	return text.String
}
