package evidence

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/exchange/flightrecorder"
)

// Dump writes what each rank of a dataset did as dumps of PyTorch's flight recorder.
func Dump(ctx context.Context, db *dataset.DB, directory string) (*flightrecorder.Written, error) {
	job, err := readJob(ctx, db)
	if err != nil {
		return nil, err
	}
	return flightrecorder.Write(job, directory)
}

// Of a rank that has had several processes the last one counts. A process's rank in the
// job is what its launcher said; without that, its rank in the group of all.
const groupsQuery = `SELECT c.communicator, coalesce(c.name, ''), coalesce(nullif(c.description, ''), 'undefined'), c.pid,
	c.rank, c.ranks, c.completed_number, coalesce(p.rank, r.rank)
FROM communicator c
LEFT JOIN (SELECT pid, any_value(rank) AS rank, max(started_ns) AS started FROM process GROUP BY pid) p USING (pid)
LEFT JOIN (SELECT pid, any_value(rank) AS rank FROM communicator WHERE description = 'default_pg' OR name = '0' GROUP BY pid) r USING (pid)
WHERE c.communicator IS NOT NULL AND c.rank IS NOT NULL AND c.ranks BETWEEN 1 AND 65536
ORDER BY c.communicator, c.rank, coalesce(p.started, 0)`

// What is open is on disk within 2 s; the calls before it, which are spans, with the next
// rotation.
const callsQuery = `WITH issued AS (
	SELECT pid, communicator, sequence_number AS number, name, ts_ns, element_count, dtype, python_stack_id FROM span
	WHERE layer = 'collective' AND category = 'issue' AND communicator IS NOT NULL AND sequence_number IS NOT NULL
	UNION ALL
	SELECT pid, communicator, sequence_number, name, ts_ns, element_count, dtype, python_stack_id FROM open_call
	WHERE layer = 'collective' AND category IN ('issue', 'work') AND communicator IS NOT NULL AND sequence_number IS NOT NULL
), ran AS (
	SELECT pid, communicator, sequence_number AS number, min(ts_ns) AS started, max(ts_ns + duration_ns) AS ended FROM span
	WHERE layer = 'collective' AND category = 'work' AND communicator IS NOT NULL AND sequence_number IS NOT NULL GROUP BY ALL
), running AS (
	SELECT pid, communicator, sequence_number AS number, min(ts_ns) AS started FROM open_call
	WHERE category = 'work' AND communicator IS NOT NULL AND sequence_number IS NOT NULL GROUP BY ALL
)
SELECT i.pid, i.communicator, i.number, any_value(i.name), min(i.ts_ns), any_value(i.element_count), coalesce(any_value(i.dtype), ''),
	any_value(i.python_stack_id), coalesce(any_value(r.started), any_value(o.started)), any_value(r.ended)
FROM issued i LEFT JOIN ran r USING (pid, communicator, number) LEFT JOIN running o USING (pid, communicator, number)
GROUP BY i.pid, i.communicator, i.number ORDER BY i.pid, min(i.ts_ns), i.number`

const framesQuery = `SELECT stack_id, CAST(to_json(list_transform(list_filter(frames, lambda f: f.kind = 'python'),
	lambda f: {name: f."function", filename: f.file, line: coalesce(f.line, 0)})) AS VARCHAR)
FROM stack WHERE stack_id IN (SELECT python_stack_id FROM span WHERE layer = 'collective' UNION ALL SELECT python_stack_id FROM open_call)`

const lostQuery = `SELECT coalesce(sum(count), 0), coalesce(max(ts_ns), 0), coalesce(arg_max(source, ts_ns), '') FROM warning
	WHERE kind = 'lost'`

func readJob(ctx context.Context, db *dataset.DB) (*flightrecorder.Job, error) {
	job := &flightrecorder.Job{Frames: map[int64][]flightrecorder.Frame{}}
	for _, r := range []struct {
		query string
		scan  func(*sql.Rows) error
	}{
		{"SELECT coalesce(any_value(host), '') FROM session", func(rows *sql.Rows) error { return rows.Scan(&job.Host) }},
		{groupsQuery, func(rows *sql.Rows) error { return scanMember(rows, job) }},
		{framesQuery, func(rows *sql.Rows) error { return scanFrames(rows, job) }},
		{callsQuery, func(rows *sql.Rows) error { return scanCall(rows, job) }},
		{lostQuery, func(rows *sql.Rows) error { return rows.Scan(&job.Lost.Rows, &job.Lost.LastNS, &job.Lost.Last) }},
	} {
		if err := each(ctx, db, r.query, r.scan); err != nil {
			return nil, err
		}
	}
	return job, nil
}

func scanMember(rows *sql.Rows, job *flightrecorder.Job) error {
	var m flightrecorder.Member
	var completed, rank sql.NullInt64
	if err := rows.Scan(&m.Communicator, &m.Name, &m.Description, &m.PID, &m.InGroup, &m.Ranks, &completed, &rank); err != nil {
		return err
	}
	m.Completed, m.Rank = present(completed), present(rank)
	job.Members = append(job.Members, m)
	return nil
}

func scanFrames(rows *sql.Rows, job *flightrecorder.Job) error {
	var id int64
	var text string
	if err := rows.Scan(&id, &text); err != nil {
		return err
	}
	var frames []flightrecorder.Frame
	if err := json.Unmarshal([]byte(text), &frames); err != nil {
		return fmt.Errorf("frames: %w", err)
	}
	job.Frames[id] = frames
	return nil
}

func scanCall(rows *sql.Rows, job *flightrecorder.Job) error {
	var c flightrecorder.Call
	var elements, stack, started, completed sql.NullInt64
	if err := rows.Scan(&c.PID, &c.Communicator, &c.Number, &c.Name, &c.CreatedNS, &elements, &c.Dtype, &stack, &started,
		&completed); err != nil {
		return err
	}
	c.Elements, c.Stack, c.StartedNS, c.CompletedNS = present(elements), stack.Int64, present(started), present(completed)
	job.Calls = append(job.Calls, c)
	return nil
}
