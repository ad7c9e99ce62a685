package output

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/ebpfprof/ebpfprof/output/columnfile"
)

// Keys of the metadata of each file.
const (
	MetadataSchemaVersion = "ebpfprof.schema_version"
	MetadataToolVersion   = "ebpfprof.tool_version"
	MetadataSession       = "ebpfprof.session_id"
	MetadataTable         = "ebpfprof.table"
)

// openFile is a file under its hidden name. Readers look for *.parquet, which
// in a shell or in DuckDB matches neither a leading dot nor this ending.
type openFile struct {
	path    string // where it will be
	file    *os.File
	parquet *columnfile.Writer
	counted int64 // bytes of it that are in the statistics
}

const unfinished = ".inprogress"

func (w *writer) create(table, name string, columns []columnfile.Column) (*openFile, error) {
	dir := tableDirectory(w.dir, table)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return w.createIn(dir, table, name, columns)
}

func (w *writer) createIn(dir, table, name string, columns []columnfile.Column) (*openFile, error) {
	file, err := os.Create(filepath.Join(dir, "."+name+unfinished))
	if err != nil {
		return nil, err
	}
	f := &openFile{path: filepath.Join(dir, name), file: file}
	metadata := []columnfile.KeyValue{
		{Key: MetadataSchemaVersion, Value: SchemaVersion},
		{Key: MetadataToolVersion, Value: w.tool},
		{Key: MetadataSession, Value: w.session},
		{Key: MetadataTable, Value: table},
	}
	f.parquet, err = columnfile.NewWriter(file, w.encoder, columns, "ebpfprof version "+w.tool, metadata)
	if err != nil {
		f.discard()
		return nil, err
	}
	return f, nil
}

// publish finishes the file, reads back what its footer says, and gives it its
// name. On an error the file is gone.
func (f *openFile) publish() error {
	if err := f.finish(); err != nil {
		f.discard()
		return err
	}
	if err := os.Rename(f.file.Name(), f.path); err != nil {
		f.discard()
		return err
	}
	return syncDirectory(filepath.Dir(f.path))
}

func (f *openFile) finish() error {
	if err := f.parquet.Close(); err != nil {
		return err
	}
	if err := f.file.Sync(); err != nil {
		return err
	}
	if err := f.file.Close(); err != nil {
		return err
	}
	summary, err := columnfile.Check(f.file.Name())
	if err != nil {
		return fmt.Errorf("checking what was written: %w", err)
	}
	if summary.Rows != f.parquet.Rows() || summary.Bytes != f.parquet.Size() {
		return fmt.Errorf("checking what was written: %s has %d rows in %d bytes, not %d in %d",
			f.path, summary.Rows, summary.Bytes, f.parquet.Rows(), f.parquet.Size())
	}
	return nil
}

func (f *openFile) discard() {
	f.file.Close()
	os.Remove(f.file.Name())
}

func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// writeSchemaFiles gives every table a file without rows: a glob over the
// table always finds a file, and with it all columns and their types. The
// views for the duckdb shell lie beside the tables.
func (w *writer) writeSchemaFiles() error {
	for _, t := range Schema() {
		f, err := w.create(t.Name, "schema.parquet", fileColumns(t))
		if err != nil {
			return err
		}
		if err := f.publish(); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(w.dir, ViewsFile), []byte(Views()), 0o644); err != nil {
		return err
	}
	return syncDirectory(w.dir)
}

// explain turns an error of writing into one sentence that says what to do.
func explain(dir string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("writing dataset: %w on the disk that holds %s; what was written before stays readable: free some space or choose another directory", ErrFull, dir)
	}
	return fmt.Errorf("writing dataset %s: %w", dir, err)
}
