package analysis

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/dataset/lint"
	"github.com/ebpfprof/ebpfprof/internal/model/calltree"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

var (
	// ErrNotDataset is returned by Open for a directory without any table.
	ErrNotDataset = dataset.ErrNotDataset
	// ErrCorrupt is returned by Open when no file of the dataset can be read.
	ErrCorrupt = dataset.ErrCorrupt
	// ErrNoSteps is returned where rules need steps and the recording has none.
	ErrNoSteps = errors.New("no steps were found")
)

// Step is one repetition of the training loop. Times are ns since the epoch, as in all
// tables; PeriodNS goes to the next step's begin and is below 0 where none follows.
type Step struct {
	Number         int
	Kind           string // train, evaluate, warmup, other
	BeginNS, EndNS int64
	PeriodNS       int64
	Whole          bool    // each of its rows was recorded: false between slices
	BesideSlices   bool    // no slice touches it, so that no probes of detail made it longer
	Weight         float64 // for how many steps it stands: more than one where steps themselves are in slices
}

// Recording is an opened dataset. It holds one connection: use it from one goroutine.
type Recording struct {
	db      *dataset.DB
	threads []timeline.Thread
	checks  *lint.Result
	tree    *Context
}

// Open opens a dataset, leaves out the rows that cannot be (`ebpfprof lint`), and finds the
// steps. Errors are ErrNotDataset, ErrCorrupt, os.ErrNotExist, or of the context.
func Open(ctx context.Context, path string) (*Recording, error) {
	db, err := dataset.Open(path)
	if err != nil {
		return nil, err
	}
	r := &Recording{db: db}
	if r.checks, err = lint.Run(ctx, db); err == nil {
		r.threads, err = timeline.Steps(ctx, db)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", path, err), db.Close())
	}
	return r, nil
}

// Close ends the recording's use.
func (r *Recording) Close() error { return r.db.Close() }

// Warnings are sentences about what the answers have to do without: damaged files, rows that
// were left out.
func (r *Recording) Warnings() []string {
	warnings := append([]string(nil), r.db.Warnings()...)
	for _, c := range r.checks.Checks {
		if c.Severity == lint.Warning || c.Severity == lint.LeftOut {
			warnings = append(warnings, c.Detail)
		}
	}
	return warnings
}

// PID is the process that rules look at: the one with the most time in steps. The error is
// ErrNoSteps.
func (r *Recording) PID() (int, error) {
	if len(r.threads) == 0 {
		return 0, ErrNoSteps
	}
	return findings.Looked(r.threads).PID, nil
}

// Steps are those of the process PID, in order of time. For SQL they are in timeline_step
// (step_id, pid, tid, kind, number, begin_ns, end_ns, until_ns, whole, weight).
func (r *Recording) Steps() (all []Step) {
	if len(r.threads) == 0 {
		return nil
	}
	for _, s := range findings.Looked(r.threads).Steps {
		all = append(all, Step{Number: s.Number, Kind: string(s.Kind), BeginNS: s.Begin, EndNS: s.End, PeriodNS: s.Period,
			Whole: s.Whole, BesideSlices: !s.Sliced, Weight: s.Weight})
	}
	return all
}

// Contexts is the root of the tree of who called whom, of all processes, Python frames and
// calls; it is made once.
func (r *Recording) Contexts(ctx context.Context) (*Context, error) {
	if r.tree == nil {
		root, err := calltree.Load(ctx, r.db, calltree.Options{})
		if err != nil {
			return nil, err
		}
		r.tree = contexts(root)
	}
	return r.tree, nil
}

// Query runs SQL on the dataset's tables (docs/schema.md), of which good_span is span
// without the rows that cannot be. Close the rows before the next call.
func (r *Recording) Query(ctx context.Context, query string, arguments ...any) (*sql.Rows, error) {
	return r.db.Query(ctx, query, arguments...)
}

// Int64s is a query's first column, for the ids of spans. NULLs are left out.
func (r *Recording) Int64s(ctx context.Context, query string, arguments ...any) (all []int64, err error) {
	rows, err := r.db.Query(ctx, query, arguments...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var first sql.NullInt64
	targets := make([]any, len(columns))
	for i := range targets {
		targets[i] = new(any)
	}
	targets[0] = &first
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		if first.Valid {
			all = append(all, first.Int64)
		}
	}
	return all, rows.Err()
}
