// Package views answers what users of Holistic Trace Analysis ask of traces with
// rows of devices: temporal breakdown, idle time by cause, overlap of communication
// and computation, queue length, launches; and regions by module, step or collective,
// with medians and outliers. A view is a table that SQL makes.
package views

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/dataset/lint"
)

// ErrUntold is wrapped where the dataset lacks what a view needs.
var ErrUntold = errors.New("cannot be told")

// Column of a view. Share columns are percentages that a picture is drawn of: one bar of
// all of them.
type Column struct {
	Name  string
	Share bool
}

// Table is a view of a dataset.
type Table struct {
	View     string
	Sentence string
	Columns  []Column
	Rows     [][]any // string, int64, float64 or nil, one for each column
	LeftOut  string  // on how much it is computed
	// Estimated: rows stand for more than was recorded, and counts and totals are scaled.
	Estimated bool
}

// Options of a view.
type Options struct {
	Rank *int
	// Names are the regions to look at, three at most; none are all.
	Names []string
}

// view is a query over the table picked, which is the rows that the options choose.
type view struct {
	name, needs string
	columns     []Column
	sql         string
	sentence    func(t *Table) string
	estimated   func(t *Table) bool // nil: rows are never more than they are
	ofDevices   bool                // about points in time of work on devices
	ofAllTime   bool                // shares of all time from the first work to the last
	bounded     *view               // where only bounds of device times are known; nil: there is none
}

const deviceRows = "points in time of work on devices: import a trace of torch.profiler or Nsight Systems"

// Names of the views, in the order in which they are offered.
func Names() (names []string) {
	for _, v := range all {
		names = append(names, v.name)
	}
	return names
}

var all = []view{breakdown, idle, overlap, queue, launches, modules, steps, collectives}

// Build makes a view.
func Build(ctx context.Context, db *dataset.DB, name string, o Options) (*Table, error) {
	for _, v := range all {
		if v.name == name {
			return v.build(ctx, db, o)
		}
	}
	return nil, fmt.Errorf("there is no view %q: one of %s", name, strings.Join(Names(), ", "))
}

func (v view) build(ctx context.Context, db *dataset.DB, o Options) (*Table, error) {
	checks, err := lint.Run(ctx, db)
	if err != nil {
		return nil, err
	}
	where := "true"
	if o.Rank != nil {
		where = fmt.Sprintf("(session_id, pid) IN (SELECT (session_id, pid) FROM process WHERE rank = %d)", *o.Rank)
	}
	if err := db.Exec(ctx, "CREATE OR REPLACE TEMP VIEW picked AS SELECT * FROM good_span WHERE "+where); err != nil {
		return nil, err
	}
	t := &Table{View: v.name, Columns: v.columns, Rows: [][]any{}}
	if checks.LeftOut > 0 {
		t.LeftOut = checks.Sentence()
	}
	rows, err := db.Query(ctx, v.sql)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		row, targets := make([]any, len(v.columns)), make([]any, len(v.columns))
		for i := range row {
			targets[i] = &row[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		if text, ok := row[0].(string); !ok || len(o.Names) == 0 || matches(text, o.Names) {
			t.Rows = append(t.Rows, plain(row))
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(t.Rows) == 0 && v.bounded != nil {
		return v.bounded.build(ctx, db, o)
	}
	if len(t.Rows) == 0 {
		return nil, fmt.Errorf("%s %w: the dataset lacks %s", v.name, ErrUntold, v.needs)
	}
	t.Sentence = v.sentence(t)
	if v.ofDevices {
		covered, err := CoveredBy(ctx, db, o.Rank)
		if err != nil {
			return nil, err
		}
		t.Sentence += covered.sentence()
	}
	if v.ofAllTime {
		start, err := FromStart(ctx, db)
		if err != nil {
			return nil, err
		}
		if start {
			t.Sentence += " The time begins with the first work of the devices and includes the job's start; report shows the steps alone."
		}
	}
	t.Estimated = v.estimated != nil && v.estimated(t)
	return t, nil
}

func matches(text string, names []string) bool {
	for _, n := range names {
		if strings.Contains(text, n) {
			return true
		}
	}
	return false
}

// plain turns DuckDB's integers into int64.
func plain(row []any) []any {
	for i, v := range row {
		switch n := v.(type) {
		case int32:
			row[i] = int64(n)
		case float32:
			row[i] = float64(n)
		case bool:
			row[i] = fmt.Sprint(n)
		}
	}
	return row
}

// total adds up a column.
func (t *Table) total(column int) (sum float64) {
	for _, row := range t.Rows {
		switch n := row[column].(type) {
		case float64:
			sum += n
		case int64:
			sum += float64(n)
		}
	}
	return sum
}

func (t *Table) text(row, column int) string { return fmt.Sprint(t.Rows[row][column]) }
