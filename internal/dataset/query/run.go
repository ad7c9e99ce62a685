package query

import (
	"context"
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// Result is what a query returned.
type Result struct {
	Columns []Column
	Rows    [][]any // int64, float64, string, bool, time.Time, *big.Int, …; nil is NULL
}

// Column is one column of a Result.
type Column struct {
	Name string
	Type string // as DuckDB names it: BIGINT, VARCHAR, …
}

// Run runs one SELECT. WITH, FROM, VALUES, DESCRIBE, SUMMARIZE and SHOW are
// SELECTs, too; so is EXPLAIN [ANALYZE] of one. Anything else is ErrNotSelect.
func (db *DB) Run(ctx context.Context, query string) (*Result, error) {
	r := new(Result)
	err := db.each(ctx, query, func(columns []Column) error {
		r.Columns = columns
		return nil
	}, func(row []any) error {
		r.Rows = append(r.Rows, row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// each calls begin once and then row for each row, as they come.
func (db *DB) each(ctx context.Context, query string, begin func([]Column) error, row func([]any) error) error {
	explain, query := splitExplain(query)
	if err := db.checkSelect(ctx, query); err != nil {
		return err
	}
	rows, err := db.Query(ctx, explain+query)
	if err != nil {
		return err
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return dataset.FirstLine(err)
	}
	columns := make([]Column, len(types))
	for i, t := range types {
		columns[i] = Column{t.Name(), t.DatabaseTypeName()}
	}
	distinctNames(columns)
	if err := begin(columns); err != nil {
		return err
	}
	for rows.Next() {
		values := make([]any, len(columns))
		targets := make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return dataset.FirstLine(err)
		}
		if err := row(values); err != nil {
			return err
		}
	}
	return dataset.FirstLine(rows.Err())
}

// distinctNames numbers columns of the same name, which JSON could not tell apart.
func distinctNames(columns []Column) {
	seen := map[string]bool{}
	for i := range columns {
		name := columns[i].Name
		for n := 1; seen[columns[i].Name]; n++ {
			columns[i].Name = fmt.Sprintf("%s_%d", name, n)
		}
		seen[columns[i].Name] = true
	}
}
