package page

import (
	"context"
	"database/sql"
	"net/http"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// live is /api/live: the last two minutes of a recording, by seconds, and its last steps.
type live struct {
	Edition    int64      `json:"edition"`
	Recording  bool       `json:"recording"`
	ElapsedNS  int64      `json:"elapsed_ns"` // of the recording, to its last row
	BinNS      int64      `json:"bin_ns"`
	Ago        []int64    `json:"until_end_ns"`         // of each bin's begin, to the last row
	Operators  []*float64 `json:"operators_per_second"` // null: calls were not recorded then, or are not written yet
	CPUs       []float64  `json:"cpus_busy"`            // of the job, by its samples
	Estimated  bool       `json:"estimated"`            // operators were recorded in slices, which stand for more
	Calls      int64      `json:"calls"`
	CallsAgoNS *int64     `json:"calls_until_end_ns"` // of the last call's begin; null without one
	Steps      []liveStep `json:"steps"`
	StepsSeen  int        `json:"steps_seen"`
	StepPID    int        `json:"step_pid"`
	Budget     *float64   `json:"budget_percent"`   // null: every call is recorded
	Cost       *float64   `json:"overhead_percent"` // known when the recording has ended
	Warnings   []lost     `json:"losses"`           // the dataset's own; a recorder writes them when it ends
}

type liveStep struct {
	ID   int64  `json:"id"`
	NS   int64  `json:"duration_ns"`
	Kind string `json:"kind"`
}

type lost struct {
	Kind   string `json:"kind"`
	Source string `json:"source"`
	Count  int64  `json:"count"`
	Detail string `json:"detail"`
}

const (
	liveBins  = 120
	liveBin   = int64(1e9)
	liveSteps = 200
)

// liveSQL has the operators of each slice, with the time that they stand for, and those outside of slices by the bin.
const liveSQL = `WITH op AS (SELECT session_id, pid, slice_id, ts_ns, weight FROM span WHERE layer = 'op' AND ts_ns >= $1)
	SELECT s.from_ns, s.to_ns, sum(op.weight)::DOUBLE, true FROM op JOIN slice s USING (session_id, pid, slice_id)
	WHERE s.to_ns > s.from_ns GROUP BY s.session_id, s.pid, s.slice_id, s.from_ns, s.to_ns
	UNION ALL SELECT $1 + (ts_ns - $1) // 1000000000 * 1000000000, $1 + (ts_ns - $1) // 1000000000 * 1000000000 + 1000000000,
	sum(weight)::DOUBLE, false FROM op WHERE slice_id IS NULL GROUP BY 1, 2`

func (s *edition) live(r *http.Request) (any, error) {
	p, err := s.pyramid(r.Context())
	if err != nil {
		return nil, err
	}
	d := live{Edition: s.number, Recording: s.recording, ElapsedNS: max(s.lanes.spanNS, p.Progress().UntilNS), BinNS: liveBin,
		Steps: []liveStep{}, Warnings: []lost{}}
	end := p.Base() + d.ElapsedNS
	begin := max(p.Base(), end-liveBins*liveBin)
	bins := int((end - begin + liveBin - 1) / liveBin)
	d.Ago, d.Operators, d.CPUs = make([]int64, bins), make([]*float64, bins), make([]float64, bins)
	for i := range bins { // from the end, so that the last one is whole
		d.Ago[i] = int64(bins-i) * liveBin
	}
	err = s.query(r.Context(), func(ctx context.Context, db *dataset.DB) error {
		if err := d.operators(ctx, db, end); err != nil {
			return err
		}
		if err := d.processors(ctx, db, end); err != nil {
			return err
		}
		var last sql.NullInt64
		if err := db.Row(ctx, "SELECT count(*), max(ts_ns) FROM span WHERE layer = 'op'", nil, &d.Calls, &last); err != nil {
			return err
		}
		if last.Valid {
			d.CallsAgoNS = new(end - last.Int64)
		}
		err := db.Row(ctx, `SELECT arg_max(budget_percent, started_ns), arg_max(overhead_percent, started_ns) FROM session`, nil, &d.Budget,
			&d.Cost)
		if err != nil {
			return err
		}
		return d.losses(ctx, db)
	})
	if err != nil {
		return nil, err
	}
	steps, err := s.findSteps(r.Context())
	if err != nil {
		return nil, err
	}
	d.StepsSeen, d.StepPID = steps.Total, steps.PID
	for i := max(0, len(steps.IDs)-liveSteps); i < len(steps.IDs); i++ {
		d.Steps = append(d.Steps, liveStep{steps.IDs[i], int64(steps.End[i] - steps.Begin[i]), steps.Kind[i]})
	}
	return d, nil
}

// bin is the one that a time is in, and the time's place in it, from 0 to 1.
func (d *live) bin(ns, end int64) (int, float64) {
	from := ns - (end - int64(len(d.Ago))*liveBin)
	bin := from / liveBin
	return int(bin), float64(from-bin*liveBin) / float64(liveBin)
}

func (d *live) operators(ctx context.Context, db *dataset.DB, end int64) error {
	rows, err := db.Query(ctx, liveSQL, end-int64(len(d.Ago))*liveBin)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var from, to int64
		var weight float64
		var sliced bool
		if err := rows.Scan(&from, &to, &weight, &sliced); err != nil {
			return err
		}
		d.Estimated = d.Estimated || sliced
		d.spread(from, to, end, weight)
	}
	return rows.Err()
}

// spread adds operators to the bins of the time that they stand for.
func (d *live) spread(from, to, end int64, weight float64) {
	first, into := d.bin(from, end)
	last, upTo := d.bin(to, end)
	for i := max(first, 0); i <= last && i < len(d.Operators); i++ {
		part := 1.0
		if i == first {
			part -= into
		}
		if i == last {
			part -= 1 - upTo
		}
		if part <= 0 {
			continue
		}
		if d.Operators[i] == nil {
			d.Operators[i] = new(float64)
		}
		*d.Operators[i] += weight * part * float64(liveBin) / float64(to-from)
	}
}

// processors fills in how many CPUs the job was on.
func (d *live) processors(ctx context.Context, db *dataset.DB, end int64) error {
	begin := end - int64(len(d.Ago))*liveBin
	rows, err := db.Query(ctx, `SELECT (ts_ns - $1) // 1000000000, sum(weight_ns)::DOUBLE FROM sample
		WHERE state = 'on_cpu' AND ts_ns >= $1 GROUP BY 1`, begin)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var bin int64
		var ns float64
		if err := rows.Scan(&bin, &ns); err != nil {
			return err
		}
		if bin >= 0 && bin < int64(len(d.CPUs)) {
			d.CPUs[bin] = ns / float64(liveBin)
		}
	}
	return rows.Err()
}

// mostLosses are listed.
const mostLosses = 50

func (d *live) losses(ctx context.Context, db *dataset.DB) error {
	rows, err := db.Query(ctx, `SELECT kind, source, sum("count")::BIGINT, coalesce(any_value(detail), '') FROM warning
		WHERE kind = 'lost' GROUP BY ALL ORDER BY 3 DESC LIMIT $1`, mostLosses)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var l lost
		if err := rows.Scan(&l.Kind, &l.Source, &l.Count, &l.Detail); err != nil {
			return err
		}
		l.Kind, l.Source, l.Detail = printable.Short(l.Kind), printable.Short(l.Source), printable.Text(l.Detail)
		d.Warnings = append(d.Warnings, l)
	}
	return rows.Err()
}
