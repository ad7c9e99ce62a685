// Package query answers SQL that users type about a dataset.
//
// It only reads: one SELECT at a time, on the views that package dataset makes,
// nothing outside the dataset's directory, nothing written into it.
package query

import (
	"errors"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// ErrNotSelect is returned by Run for anything but a single SELECT.
var ErrNotSelect = errors.New("not a single SELECT")

// DB is an opened dataset that takes users' queries. It holds one DuckDB
// connection: use it from one goroutine at a time.
type DB struct{ *dataset.DB }

// Open opens a dataset, with the errors of package dataset.
func Open(path string) (*DB, error) {
	db, err := dataset.Open(path)
	if err != nil {
		return nil, err
	}
	return &DB{db}, nil
}
