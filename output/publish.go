package output

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"github.com/ebpfprof/ebpfprof/internal/directory"
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
	dir     *directory.Directory // of its table
	name    string               // that it will have
	file    *os.File
	parquet *columnfile.Writer
	counted int64 // bytes of it that are in the statistics
}

const unfinished = ".inprogress"

func (f *openFile) hiddenName() string { return "." + f.name + unfinished }

func (w *writer) create(table, name string, columns []columnfile.Column) (*openFile, error) {
	dir, err := w.dir.Directory(table)
	if err != nil {
		return nil, err
	}
	return w.createIn(dir, table, name, columns)
}

// createIn takes the directory over, also when it fails.
func (w *writer) createIn(dir *directory.Directory, table, name string, columns []columnfile.Column) (*openFile, error) {
	f := &openFile{dir: dir, name: name}
	var err error
	if f.file, err = dir.Create(f.hiddenName()); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	metadata := []columnfile.KeyValue{
		{Key: MetadataSchemaVersion, Value: SchemaVersion},
		{Key: MetadataToolVersion, Value: w.tool},
		{Key: MetadataSession, Value: w.session},
		{Key: MetadataTable, Value: table},
	}
	f.parquet, err = columnfile.NewWriter(f.file, w.encoder, columns, "ebpfprof version "+w.tool, metadata)
	if err != nil {
		f.discard()
		return nil, err
	}
	return f, nil
}

// publish finishes the file, reads back what its footer says, and gives it its
// name. On an error the file is gone.
func (f *openFile) publish() error { return publishTogether([]*due{{files: []*openFile{f}}}) }

// due are files of one table that get their names one right after the other, or not at
// all.
type due struct {
	files []*openFile
	// What is to be done when they have them, and when they are gone; nil is nothing.
	published, failed func()
	err               error
}

// publishTogether gives the files of several tables their names, in their order. The disk
// is waited for twice and not twice for each file: a file system writes what is waited
// for at once in one go. What fails costs its own table's files.
func publishTogether(all []*due) error {
	for _, d := range all {
		for _, f := range d.files {
			d.err = errors.Join(d.err, f.parquet.Close())
		}
	}
	eachAtOnce(all, func(d *due) error {
		for _, f := range d.files {
			if err := f.file.Sync(); err != nil {
				return err
			}
		}
		return nil
	})
	for _, d := range all {
		d.name()
	}
	eachAtOnce(all, func(d *due) error { return d.files[0].dir.Sync() })
	var errs []error
	for _, d := range all {
		errs = append(errs, d.over())
	}
	return errors.Join(errs...)
}

// eachAtOnce does something to all that have not failed.
func eachAtOnce(all []*due, do func(*due) error) {
	var group sync.WaitGroup
	for _, d := range all {
		if d.err == nil {
			group.Go(func() { d.err = do(d) })
		}
	}
	group.Wait()
}

// name looks at what was written and gives it its names; the files without one are gone
// after an error.
func (d *due) name() {
	for _, f := range d.files {
		if d.err == nil {
			d.err = f.check()
		}
	}
	for _, f := range d.files {
		if d.err == nil {
			d.err = f.dir.Rename(f.hiddenName(), f.name)
		}
		if d.err != nil {
			_ = f.dir.Remove(f.hiddenName())
		}
	}
}

// over closes the files and tells who waits for them.
func (d *due) over() error {
	for _, f := range d.files {
		f.file.Close()
		d.err = errors.Join(d.err, f.dir.Close())
	}
	tell := d.published
	if d.err != nil {
		tell = d.failed
	}
	if tell != nil {
		tell()
	}
	return d.err
}

// check compares what the file says of itself with what was written.
func (f *openFile) check() error {
	summary, err := columnfile.CheckFile(f.file)
	if err != nil {
		return fmt.Errorf("checking what was written: %w", err)
	}
	if summary.Rows != f.parquet.Rows() || summary.Bytes != f.parquet.Size() {
		return fmt.Errorf("checking what was written: %s has %d rows in %d bytes, not %d in %d",
			f.name, summary.Rows, summary.Bytes, f.parquet.Rows(), f.parquet.Size())
	}
	return nil
}

func (f *openFile) discard() {
	_ = f.dir.Remove(f.hiddenName())
	f.file.Close()
	f.dir.Close()
}

// discardAll is for what cannot be published because something before that failed.
func discardAll(all []*due) {
	for _, d := range all {
		for _, f := range d.files {
			f.discard()
		}
	}
}

// writeSchemaFiles gives every table a file without rows: a glob over the
// table always finds a file, and with it all columns and their types. The
// views for the duckdb shell lie beside the tables.
func (w *writer) writeSchemaFiles() error {
	var all []*due
	for _, t := range Schema() {
		f, err := w.create(t.Name, "schema.parquet", fileColumns(t))
		if err != nil {
			discardAll(all)
			return err
		}
		all = append(all, &due{files: []*openFile{f}})
	}
	if err := publishTogether(all); err != nil {
		return err
	}
	if err := w.writeViews(); err != nil {
		return err
	}
	return w.dir.Sync()
}

func (w *writer) writeViews() error {
	f, err := w.dir.Create(ViewsFile)
	if err != nil {
		return err
	}
	_, err = f.WriteString(Views())
	return errors.Join(err, f.Close())
}

// removeAll removes every table and the views. The directory was empty when the
// dataset was begun.
func (w *writer) removeAll() (err error) {
	for _, t := range Schema() {
		err = errors.Join(err, w.removeTable(t.Name))
	}
	return errors.Join(err, unlessMissing(w.dir.Remove(ViewsFile)))
}

func (w *writer) removeTable(name string) error {
	table, err := w.dir.Subdirectory(name)
	if err != nil { // a link is not followed
		return unlessMissing(w.dir.Remove(name))
	}
	defer table.Close()
	files, err := table.Names()
	for _, file := range files {
		err = errors.Join(err, table.Remove(file))
	}
	return errors.Join(err, w.dir.Remove(name))
}

func unlessMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// explain turns an error of writing into one sentence that says what to do.
func explain(dir string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("writing dataset: %w on the disk that holds %s; what was written before stays readable: free some space or choose "+
			"another directory", ErrFull, dir)
	}
	return fmt.Errorf("writing dataset %s: %w", dir, err)
}
