// Package column reads columns of a dataset's Parquet files as they lie there, past
// DuckDB, whose driver makes a value of its own of each field of each row: tens of
// millions of rows take seconds this way.
package column

import (
	"errors"
	"os"
	"syscall"

	"github.com/parquet-go/parquet-go"

	"github.com/ebpfprof/ebpfprof/output/columnfile"
)

// The library makes room for whatever number of rows a damaged file claims: more than
// these no recording has, however well its rows compress.
const (
	rowsOfByte = 64
	leastRows  = 1 << 16
)

// File is a table's file.
type File struct {
	*parquet.File
	file *os.File
}

// OpenFile checks the file's pages against its size and opens it.
func OpenFile(path string) (_ *File, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO is not waited for
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := columnfile.CheckPages(f, max(leastRows, rowsOfByte*info.Size())); err != nil {
		return nil, err
	}
	opened, err := parquet.OpenFile(f, info.Size(), parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return nil, err
	}
	rows := int64(0)
	for _, group := range opened.RowGroups() {
		n := group.NumRows()
		if n < 0 || n > opened.NumRows()-rows {
			return nil, errors.New("the row groups do not add up to the declared number of rows")
		}
		rows += n
	}
	return &File{opened, f}, nil
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }
