// Package derived writes the tables that analyses leave in a dataset when they are
// asked to: step, context_node, finding, memory_block, memory_plan, annotation,
// saved_query, clock. Each is one file
// that is written whole and replaces the one before it, so that it can be deleted and
// made again. What was recorded is never touched.
package derived

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ebpfprof/ebpfprof/internal/directory"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/output/columnfile"
)

// Version of the analyses is in the metadata of what they write, and in column
// analysis_version of their tables.
const Version = "1.0.0"

// Column is a column of a table of rows of T; exactly one getter is set, and it says
// false where the value is absent.
type Column[T any] struct {
	Name   string
	Ints   func(*T) (int64, bool)
	Floats func(*T) (float64, bool)
	Texts  func(*T) (string, bool)
	Bool   bool // Ints are 0 and 1
}

func (c Column[T]) column(id int) columnfile.Column {
	kind := columnfile.String
	switch {
	case c.Bool:
		kind = columnfile.Boolean
	case c.Ints != nil:
		kind = columnfile.Int64
	case c.Floats != nil:
		kind = columnfile.Double
	}
	return columnfile.Column{Name: c.Name, ID: int32(id), Kind: kind, Nullable: true}
}

// Write replaces a table of the dataset with the rows. The file belongs to whom the
// dataset's directory belongs to.
func Write[T any](root, table string, columns []Column[T], rows []T) (err error) {
	in, err := directory.Open(root)
	if err != nil {
		return fmt.Errorf("saving table %s: %w", table, err)
	}
	defer in.Close()
	access, err := accessOf(root)
	if err != nil {
		return fmt.Errorf("saving table %s: %w", table, err)
	}
	dir, err := in.With(access).Directory(table)
	if err != nil {
		return fmt.Errorf("saving table %s: %w", table, err)
	}
	defer dir.Close()
	name, hidden := table+".parquet", "."+table+".parquet.inprogress"
	_ = dir.Remove(hidden) // of a run that was killed
	file, err := dir.Create(hidden)
	if err != nil {
		return fmt.Errorf("saving table %s: %w", table, err)
	}
	err = fill(file, table, columns, rows)
	err = errors.Join(err, file.Close())
	if err == nil {
		err = errors.Join(dir.Rename(hidden, name), dir.Sync())
	}
	if err != nil {
		return fmt.Errorf("saving table %s: %w", table, errors.Join(err, dir.Remove(hidden)))
	}
	return nil
}

func accessOf(root string) (directory.Access, error) {
	d, err := os.Open(root)
	if err != nil {
		return directory.Access{}, err
	}
	defer d.Close()
	a, err := directory.AccessOf(d)
	a.Mode &= 0o666
	return a, err
}

func fill[T any](file *os.File, table string, columns []Column[T], rows []T) error {
	if err := Encode(file, table, columns, rows); err != nil {
		return err
	}
	return file.Sync()
}

// Encode writes the rows of a table as one Parquet file.
func Encode[T any](file io.Writer, table string, columns []Column[T], rows []T) error {
	all := make([]columnfile.Column, len(columns))
	for i, c := range columns {
		all[i] = c.column(i + 1)
	}
	metadata := []columnfile.KeyValue{
		{Key: output.MetadataSchemaVersion, Value: output.SchemaVersion}, {Key: output.MetadataTable, Value: table},
		{Key: "ebpfprof.analysis_version", Value: Version},
	}
	encoder, err := columnfile.NewEncoder()
	if err != nil {
		return err
	}
	w, err := columnfile.NewWriter(file, encoder, all, "ebpfprof", metadata)
	if err != nil {
		return err
	}
	for len(rows) > 0 {
		n := min(len(rows), output.RowGroupRows)
		if err := writeGroup(w, columns, rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return w.Close()
}

func writeGroup[T any](w *columnfile.Writer, columns []Column[T], rows []T) error {
	order := make([]int32, len(rows))
	for i := range order {
		order[i] = int32(i)
	}
	return w.WriteRowGroup(len(rows), -1, func(i int) *columnfile.Values {
		v := new(columnfile.Values)
		switch c := columns[i]; {
		case c.Ints != nil:
			columnfile.Ints(v, rows, order, c.Ints)
		case c.Floats != nil:
			columnfile.Floats(v, rows, order, c.Floats)
		default:
			columnfile.Texts(v, rows, order, c.Texts)
		}
		return v
	})
}
