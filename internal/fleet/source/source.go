// Package source makes the patterns and steps of a recorded dataset: what a worker
// of the agent makes while it records.
package source

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Window is how long a window of patterns is (PerfTracker's).
const Window = int64(20e9) // ns

// leastShare is the share of the time from which on a function has a row of its own.
const leastShare = 0.001

// Upload is what travels of a recording.
type Upload struct {
	Session  string
	Host     string
	Job      string // the scheduler's, as the processes have it; "" without one
	Patterns []pattern.Pattern
	Steps    []pattern.Step
	Lost     pattern.Lost
	// EventBytes is the size of the dataset's files, which stay where they are.
	EventBytes int64
}

// Read makes the patterns of a dataset, window by window.
func Read(ctx context.Context, db *dataset.DB, job string) (*Upload, error) {
	u := &Upload{Job: job}
	var frequency sql.NullInt64
	if err := db.Row(ctx, "SELECT session_id, coalesce(host, ''), frequency_hz FROM session LIMIT 1", nil, &u.Session, &u.Host,
		&frequency); err != nil {
		return nil, fmt.Errorf("reading the session: %w", err)
	}
	if u.Job == "" {
		if err := db.Row(ctx, "SELECT coalesce(max(job_id), '') FROM process", nil, &u.Job); err != nil {
			return nil, fmt.Errorf("reading the job: %w", err)
		}
	}
	c := pattern.New(frequency.Int64)
	r := reader{ctx, db, c}
	for _, read := range []func() error{r.processes, r.stacks} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	threads, err := timeline.Steps(ctx, db)
	if err != nil {
		return nil, err
	}
	var begin, end sql.NullInt64
	if err := db.Row(ctx, "SELECT min(ts_ns), max(ts_ns) FROM sample", nil, &begin, &end); err != nil {
		return nil, fmt.Errorf("reading samples: %w", err)
	}
	if err := r.spans(0, 0); err != nil { // which threads make steps
		return nil, err
	}
	c.Flush()
	// What came before the first step was not the loop: imports, building the model.
	if first, ok := firstStep(threads); ok {
		begin.Int64 = max(begin.Int64, first)
	}
	for from := begin.Int64; begin.Valid && from <= end.Int64; from += Window {
		until := from + Window
		if end.Int64-until < Window/2 { // a short rest belongs to the window before it
			until = end.Int64 + 1
		}
		if err := r.spans(from, until); err != nil {
			return nil, err
		}
		if err := r.device(from, until); err != nil {
			return nil, err
		}
		if err := r.samples(from, until); err != nil {
			return nil, err
		}
		if err := r.quotas(from, until); err != nil {
			return nil, err
		}
		u.Patterns = append(u.Patterns, pattern.Compact(c.Flush(), leastShare)...)
		if until > end.Int64 {
			break
		}
	}
	u.Lost = c.Lost()
	if u.Steps, err = r.steps(threads); err != nil {
		return nil, err
	}
	for i := range u.Patterns {
		u.Patterns[i].Job, u.Patterns[i].Host = u.Job, u.Host
	}
	for i := range u.Steps {
		u.Steps[i].Job, u.Steps[i].Host = u.Job, u.Host
	}
	u.EventBytes = db.Bytes()
	return u, nil
}

// Steps are the training steps of each process of a dataset, as Read has them.
func Steps(ctx context.Context, db *dataset.DB) ([]pattern.Step, error) {
	threads, err := timeline.Steps(ctx, db)
	if err != nil {
		return nil, err
	}
	return reader{ctx: ctx, db: db}.steps(threads)
}

// firstStep is when the first training step began, after warm-up.
func firstStep(threads []timeline.Thread) (first int64, ok bool) {
	for _, t := range threads {
		if all := t.Training(); len(all) > 0 && (!ok || all[0].Begin < first) {
			first, ok = all[0].Begin, true
		}
	}
	return first, ok
}

type reader struct {
	ctx context.Context
	db  *dataset.DB
	c   *pattern.Collector
}

// each runs a query and hands every row to scan.
func (r reader) each(what, query string, scan func(*sql.Rows) error, args ...any) error {
	rows, err := r.db.Query(r.ctx, query, args...)
	if err != nil {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return fmt.Errorf("reading %s: %w", what, err)
		}
	}
	return rows.Err()
}

func (r reader) processes() error {
	return r.each("processes", "SELECT DISTINCT pid, rank, cgroup FROM process", func(rows *sql.Rows) error {
		var p event.Process
		var rank sql.NullInt32
		var cgroup sql.NullString
		if err := rows.Scan(&p.PID, &rank, &cgroup); err != nil {
			return err
		}
		if cgroup.Valid {
			p.Cgroup = &cgroup.String
		}
		if rank.Valid {
			p.Rank = &rank.Int32
		}
		return r.c.Write(&event.Batch{Processes: []event.Process{p}})
	})
}

// stacks reads a frame a row: one of DuckDB's nested values is a tree of boxed ones.
func (r reader) stacks() error {
	var s event.Stack
	flush := func() error {
		if s.ID == 0 {
			return nil
		}
		return r.c.Write(&event.Batch{Stacks: []event.Stack{s}})
	}
	err := r.each("stacks", `SELECT stack_id, f.kind, coalesce(f.function, ''), coalesce(f.file, ''), coalesce(f.line, 0),
		coalesce(f.module, '')
		FROM (SELECT stack_id, unnest(frames) AS f, generate_subscripts(frames, 1) AS i FROM (
			SELECT stack_id, any_value(frames) AS frames FROM stack WHERE stack_id IN (SELECT stack_id FROM sample) GROUP BY stack_id))
		ORDER BY stack_id, i`, func(rows *sql.Rows) error {
		var id int64
		var kind string
		var f event.Frame
		if err := rows.Scan(&id, &kind, &f.Function, &f.File, &f.Line, &f.Module); err != nil {
			return err
		}
		f.Kind = symbolize.Kind(kind)
		if id != s.ID {
			if err := flush(); err != nil {
				return err
			}
			s = event.Stack{ID: id}
		}
		s.Frames = append(s.Frames, f)
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

func (r reader) samples(from, until int64) error {
	return r.each("samples", `SELECT ts_ns, pid, tid, state, coalesce(cause, ''), weight_ns, stack_id, coalesce(syscall, ''), in_gc,
			coalesce(ready_ns, CASE WHEN cause = 'preempted' THEN weight_ns ELSE 0 END)
		FROM sample WHERE ts_ns >= ? AND ts_ns < ? ORDER BY ts_ns`, func(rows *sql.Rows) error {
		var s event.Sample
		var stack sql.NullInt64
		var collecting sql.NullBool
		if err := rows.Scan(&s.TSNS, &s.PID, &s.TID, &s.State, &s.Cause, &s.WeightNS, &stack, &s.Syscall, &collecting, &s.ReadyNS); err != nil {
			return err
		}
		if stack.Valid {
			s.StackID = &stack.Int64
		}
		if collecting.Valid {
			s.InGC = &collecting.Bool
		}
		return r.c.Write(&event.Batch{Samples: []event.Sample{s}})
	}, from, until)
}

// quotas reads what the quotas of control groups took, and the counters that tell hardware from software.
func (r reader) quotas(from, until int64) error {
	return r.each("counters", `SELECT ts_ns, pid, coalesce(scope, ''), name, value, kind, unit, coalesce(device, ''), device_id, period_ns
		FROM counter
		WHERE name IN ('`+strings.Join(append(slices.Concat(pattern.Counters, pattern.QuotaCounters), pattern.OwnsDevice), "', '")+`')
			AND ts_ns >= ? AND ts_ns < ? ORDER BY ts_ns`, func(rows *sql.Rows) error {
		var n event.Counter
		var pid, device sql.NullInt32
		var period sql.NullInt64
		if err := rows.Scan(&n.TSNS, &pid, &n.Scope, &n.Name, &n.Value, &n.Kind, &n.Unit, &n.Device, &device, &period); err != nil {
			return err
		}
		if pid.Valid {
			n.PID = &pid.Int32
		}
		if device.Valid {
			n.DeviceID = &device.Int32
		}
		if period.Valid {
			n.PeriodNS = &period.Int64
		}
		return r.c.Write(&event.Batch{Counters: []event.Counter{n}})
	}, from, until)
}

// spans reads the calls that are recorded always, where the budget has room for them; of all
// times where until is 0.
func (r reader) spans(from, until int64) error {
	known := map[event.Call]*event.Call{}
	if until == 0 {
		until = 1<<63 - 1
	}
	return r.each("calls", `SELECT ts_ns, coalesce(duration_ns, -1), pid, tid, layer, coalesce(category, ''), coalesce(runtime, ''), name,
		bytes, coalesce(slice_id, 0)
		FROM span WHERE (layer IN ('scope', 'collective') OR layer = 'autograd' AND category = 'backward'
			OR layer = 'runtime' AND runtime IN ('pjrt', 'neuron') AND category = 'launch') AND ts_ns >= ? AND ts_ns < ? ORDER BY ts_ns`,
		func(rows *sql.Rows) error {
			var s event.Span
			var call event.Call
			var bytes sql.NullInt64
			if err := rows.Scan(&s.StartNS, &s.DurationNS, &s.PID, &s.TID, &call.Layer, &call.Category, &call.Runtime, &call.Name, &bytes,
				&s.SliceID); err != nil {
				return err
			}
			if known[call] == nil {
				known[call] = &call
			}
			s.Call = known[call]
			if bytes.Valid {
				s.MakeDetail().Bytes = &bytes.Int64
			}
			return r.c.Write(&event.Batch{Spans: []event.Span{s}})
		}, from, until)
}

// waitSQL is how long a step's thread waited in collectives. Waits that were recorded whole are summed step by step, exact
// down to the threshold of the recording. Once waits are sampled (warning slice/waits) a row represents the time between
// two looks, which may be longer than a step, and not each has a stack: from then on each step of a thread has the mean
// share of them.
const waitSQL = `
WITH since AS (SELECT session_id, min(ts_ns) AS ns FROM warning WHERE kind = 'slice' AND source = 'waits' GROUP BY ALL),
collective AS (SELECT DISTINCT session_id, stack_id FROM (SELECT session_id, stack_id, unnest(frames) AS f FROM stack)
  WHERE f.kind = 'native' AND (starts_with(f.function, 'c10d::') AND NOT starts_with(f.function, 'c10d::Reducer')
OR starts_with(f.function, 'nccl'))),
wait AS (SELECT s.pid, s.tid, s.ts_ns, s.weight_ns, s.stack_id IS NOT NULL AS known, c.stack_id IS NOT NULL AS collective,
    coalesce(since.ns, 9223372036854775807) AS since
  FROM sample s LEFT JOIN since USING (session_id) LEFT JOIN collective c USING (session_id, stack_id)
  WHERE s.state = 'off_cpu' AND coalesce(s.cause, '') <> 'preempted'),
whole AS (SELECT t.step_id, sum(least(w.ts_ns + w.weight_ns, t.until_ns) - w.ts_ns) AS ns
  FROM timeline_step t JOIN wait w ON w.pid = t.pid AND w.tid = t.tid AND w.ts_ns >= t.begin_ns AND w.ts_ns < t.until_ns
  WHERE w.collective AND w.ts_ns < w.since GROUP BY ALL),
sampled AS (SELECT w.pid, w.tid, w.since, sum(w.weight_ns) * sum(w.weight_ns) FILTER (collective) / nullif(sum(w.weight_ns) FILTER (known),
0) AS ns
  FROM timeline_step t JOIN wait w ON w.pid = t.pid AND w.tid = t.tid AND w.ts_ns >= t.begin_ns AND w.ts_ns < t.until_ns
  WHERE t.begin_ns >= w.since GROUP BY ALL),
shared AS (SELECT t.step_id, (t.until_ns - t.begin_ns) * least(1, s.ns / sum(t.until_ns - t.begin_ns) OVER (PARTITION BY t.pid,
t.tid)) AS ns
  FROM timeline_step t JOIN sampled s USING (pid, tid) WHERE t.begin_ns >= s.since)
SELECT step_id, coalesce(sum(ns), 0)::BIGINT FROM (FROM whole UNION ALL FROM shared) GROUP BY step_id`

const loadSQL = `
SELECT t.step_id, sum(s.duration_ns)
FROM timeline_step t JOIN span s ON s.pid = t.pid AND s.tid = t.tid AND s.ts_ns >= t.begin_ns AND s.ts_ns < t.until_ns
WHERE s.layer = 'scope' AND starts_with(s.name, 'enumerate(DataLoader)#')
GROUP BY t.step_id`

// exitSQL is the last collective that a process left in a step.
const exitSQL = `
SELECT t.step_id, arg_max(s.communicator, s.ts_ns + s.duration_ns), arg_max(s.sequence_number, s.ts_ns + s.duration_ns),
max(s.ts_ns + s.duration_ns)
FROM timeline_step t JOIN span s ON s.pid = t.pid AND s.ts_ns + s.duration_ns >= t.begin_ns AND s.ts_ns + s.duration_ns < t.until_ns
WHERE s.layer = 'collective' AND s.category = 'work' AND s.communicator IS NOT NULL AND s.sequence_number IS NOT NULL
AND s.duration_ns IS NOT NULL
GROUP BY t.step_id`

func (r reader) exits() (map[int64]*pattern.Exit, error) {
	found := map[int64]*pattern.Exit{}
	return found, r.each("ends of collectives", exitSQL, func(rows *sql.Rows) error {
		var id int64
		var e pattern.Exit
		if err := rows.Scan(&id, &e.Communicator, &e.Number, &e.NS); err != nil {
			return err
		}
		found[id] = &e
		return nil
	})
}

func (r reader) steps(threads []timeline.Thread) (all []pattern.Step, err error) {
	sums := func(what, query string) (map[int64]int64, error) {
		found := map[int64]int64{}
		return found, r.each(what, query, func(rows *sql.Rows) error {
			var id int64
			var ns sql.NullInt64
			if err := rows.Scan(&id, &ns); err != nil {
				return err
			}
			found[id] = ns.Int64
			return nil
		})
	}
	waits, err := sums("waits", waitSQL)
	if err != nil {
		return nil, err
	}
	loads, err := sums("loads", loadSQL)
	if err != nil {
		return nil, err
	}
	exits, err := r.exits()
	if err != nil {
		return nil, err
	}
	// A process whose loader is never seen has no scopes for it: that is not 0 ns.
	marked := map[int]bool{}
	for _, t := range threads {
		for _, s := range t.Training() {
			if _, seen := loads[s.ID]; seen {
				marked[int(t.PID)] = true
			}
		}
	}
	for _, t := range threads {
		rank := int32(-1)
		if t.Rank != nil {
			rank = int32(*t.Rank)
		}
		for _, s := range t.Training() {
			load, seen := loads[s.ID]
			if !seen && !marked[int(t.PID)] {
				load = -1
			}
			all = append(all, pattern.Step{PID: int32(t.PID), Rank: rank, Number: int64(s.Number), BeginNS: s.Begin,
				PeriodNS: s.Period, WaitNS: waits[s.ID], LoadNS: load, Exit: exits[s.ID]})
		}
	}
	return all, nil
}
