package output

import (
	"errors"
	"fmt"
	"io"

	"github.com/ebpfprof/ebpfprof/internal/directory"
	"github.com/ebpfprof/ebpfprof/output/columnfile"
)

// Frame is a dataset of all tables without rows, to be filled with whole files: what has rows
// already does not become events again.
type Frame struct{ writer *writer }

// CreateFrame makes one in dir, as Create does.
func CreateFrame(dir, toolVersion string, access Access) (*Frame, error) {
	if access.Mode == 0 {
		access = directory.Invoker()
	}
	in, err := makeEmptyDirectory(dir, access)
	if err != nil {
		return nil, err
	}
	w, err := newWriter(in, 0)
	if err != nil {
		return nil, errors.Join(err, in.Unmake())
	}
	w.tool = toolVersion
	if err := w.writeSchemaFiles(); err != nil {
		return nil, errors.Join(explain(dir, err), w.removeAll(), in.Unmake())
	}
	return &Frame{w}, nil
}

// Write adds a file to a table. It can be seen when it is whole, on disk and has been read back.
func (f *Frame) Write(table, name string, fill func(io.Writer) error) error {
	dir, err := f.writer.dir.Directory(table)
	if err != nil {
		return fmt.Errorf("writing table %s: %w", table, err)
	}
	defer dir.Close()
	hidden := "." + name + unfinished
	file, err := dir.Create(hidden)
	if err != nil {
		return fmt.Errorf("writing table %s: %w", table, err)
	}
	if err = fill(file); err == nil {
		err = file.Sync()
	}
	if err == nil {
		_, err = columnfile.CheckFile(file)
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = errors.Join(dir.Rename(hidden, name), dir.Sync())
	}
	if err != nil {
		return explain(f.writer.dir.Path(), fmt.Errorf("table %s: %w", table, errors.Join(err, unlessMissing(dir.Remove(hidden)))))
	}
	return nil
}

// Close ends the writing; the files are all there.
func (f *Frame) Close() error { return f.writer.dir.Close() }

// Discard removes all that was written, and closes.
func (f *Frame) Discard() error { return errors.Join(f.writer.removeAll(), f.writer.dir.Unmake()) }
