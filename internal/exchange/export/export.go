// Package export writes a dataset in the forms that other tools read: Perfetto's
// protobuf, the JSON of torch.profiler, and, added up, pprof, speedscope, folded
// stacks and OpenTelemetry's profiles.
//
// Each span that the form can hold is written once, and the others are counted
// in the Result. Rows are read in blocks in order of time, so that memory depends
// on the size of a block.
package export

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// ErrTooLarge is wrapped where not even the beginning fits into MaxBytes.
var ErrTooLarge = errors.New("does not fit")

// Options of Write.
type Options struct {
	Rank     *int
	MaxBytes int64 // 0 is no limit; what does not fit is left out, the latest first
	GroupBy  string
	Progress func(part float64)
}

// Result says what was written.
type Result struct {
	Spans   int64 // in the dataset, of the ranks chosen
	Slices  int64 // written
	LeftOut []string
}

func (r *Result) leave(n int64, format string, args ...any) {
	if n > 0 {
		r.LeftOut = append(r.LeftOut, fmt.Sprintf("%d ", n)+fmt.Sprintf(format, args...))
	}
}

// stream reads the rows.
type stream struct {
	ctx     context.Context
	db      *dataset.DB
	options Options
	result  *Result

	firstNS, lastNS int64
	chosen          map[dataset.Process]bool // nil: all
	sums            *sums                    // of formats of kind Sums
}

// everything is the condition that all rows meet.
const everything = "true"

// choose makes the view export_span: the rows of the ranks that were asked for.
func (s *stream) choose() error {
	where := everything
	if s.options.Rank != nil {
		where = fmt.Sprintf("(session_id, pid) IN (SELECT (session_id, pid) FROM process WHERE rank = %d)", *s.options.Rank)
	}
	return s.chooseWhere(where)
}

func (s *stream) chooseWhere(where string) error {
	if err := s.db.Exec(s.ctx, "CREATE OR REPLACE TEMP VIEW export_span AS SELECT * FROM span WHERE "+where); err != nil {
		return err
	}
	var first, last sql.NullInt64
	err := s.db.Row(s.ctx, `SELECT count(*), min(ts_ns), max(ts_ns + CASE WHEN duration_ns < 604800000000000 THEN duration_ns ELSE 0 END)
		FROM export_span`, nil, &s.result.Spans, &first, &last)
	if err != nil {
		return err
	}
	if s.options.Rank != nil && s.result.Spans == 0 {
		return fmt.Errorf("the dataset has no spans of rank %d", *s.options.Rank)
	}
	s.firstNS, s.lastNS = first.Int64, last.Int64
	if where == everything {
		return nil
	}
	return s.processes()
}

// processes are those that have rows in export_span.
func (s *stream) processes() error {
	rows, err := s.db.Query(s.ctx, "SELECT DISTINCT session_id, pid FROM export_span")
	if err != nil {
		return err
	}
	defer rows.Close()
	s.chosen = map[dataset.Process]bool{}
	for rows.Next() {
		var p dataset.Process
		if err := rows.Scan(&p.Session, &p.PID); err != nil {
			return err
		}
		s.chosen[p] = true
	}
	return rows.Err()
}

// spans calls f for each row in order of time, a row before those inside of it.
func (s *stream) spans(columns []column, f func(*span) error) error {
	edges, err := s.edges()
	if err != nil {
		return err
	}
	defer edges.close()
	var r span
	scan := dataset.Scan{Table: "span", Columns: namesOf(columns), Of: s.chosen, Before: before}
	err = s.db.Scan(s.ctx, scan, func(b *dataset.Batch) error {
		if s.options.Progress != nil && s.lastNS > s.firstNS {
			s.options.Progress(float64(b.Columns[timeColumn][0]-s.firstNS) / float64(s.lastNS-s.firstNS))
		}
		for i := range b.Rows {
			for c := range columns {
				columns[c].set(&r, b, b.Columns[c][i])
			}
			r.target, r.from = edges.target(r.id)
			r.to = edges.isTarget(r.id)
			if err := f(&r); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, edges.failed())
}

// until is where a row ends; what has no end lasts until the recording's.
func (s *stream) until(r *span) (end int64, ok bool) {
	switch {
	case r.duration.Valid && r.duration.Int64 >= 0 && r.duration.Int64 < 1<<61:
		return r.ts + r.duration.Int64, true
	case r.end == "unfinished":
		return max(s.lastNS, r.ts), true
	}
	return 0, false
}

// names of processes and threads.
type names struct {
	processes map[int32]string
	threads   map[[2]int32]string
	ranks     map[int32]int32
	worldSize int32
}

func (s *stream) names() (n names, err error) {
	n = names{map[int32]string{}, map[[2]int32]string{}, map[int32]int32{}, 0}
	rows, err := s.db.Query(s.ctx, "SELECT pid, coalesce(command, exe, ''), rank, world_size FROM process")
	if err != nil {
		return n, err
	}
	for rows.Next() {
		var pid int32
		var name string
		var rank, world sql.NullInt32
		if err := rows.Scan(&pid, &name, &rank, &world); err != nil {
			return n, errors.Join(err, rows.Close())
		}
		if rank.Valid {
			n.ranks[pid] = rank.Int32
			name = fmt.Sprintf("rank %d %s", rank.Int32, name)
		}
		n.worldSize = max(n.worldSize, world.Int32)
		n.processes[pid] = name
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return n, err
	}
	rows, err = s.db.Query(s.ctx, "SELECT pid, tid, coalesce(name, '') FROM thread")
	if err != nil {
		return n, err
	}
	defer rows.Close()
	for rows.Next() {
		var key [2]int32
		var name string
		if err := rows.Scan(&key[0], &key[1], &name); err != nil {
			return n, err
		}
		n.threads[key] = name
	}
	return n, rows.Err()
}
