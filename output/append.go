package output

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/directory"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Append adds spans, merged traces and warnings to a dataset that was written before, in files of their own: those that
// are there stay as they are. session and toolVersion are the recording's. The files have the mode and the owner of
// the dataset's. Either all tables get their rows, or the error says what failed.
func Append(path, session, toolVersion string, b *event.Batch) error {
	if !fileName.MatchString(session) {
		return fmt.Errorf("adding to dataset %s: session id %q cannot name a file", path, session)
	}
	dir, err := directory.Open(path)
	if err != nil {
		return fmt.Errorf("adding to dataset %s: %w", path, err)
	}
	access, err := accessOf(dir)
	if err != nil {
		return fmt.Errorf("adding to dataset %s: %w", path, errors.Join(err, dir.Close()))
	}
	w, err := newWriter(dir.With(access), 0)
	if err != nil {
		return errors.Join(err, dir.Close())
	}
	w.session, w.tool = session, toolVersion
	defer dir.Close()
	name, err := addedName(dir, session)
	if err != nil {
		return fmt.Errorf("adding to dataset %s: %w", path, err)
	}
	var all []*due
	for _, add := range []func() (*openFile, error){
		func() (*openFile, error) { return addRows(w, spanTable, name, b.Spans) },
		func() (*openFile, error) { return addRows(w, mergedTraceTable, name, b.MergedTraces) },
		func() (*openFile, error) { return addRows(w, warningTable, name, b.Warnings) },
	} {
		f, err := add()
		if err != nil {
			discardAll(all)
			return explain(path, err)
		}
		if f != nil {
			all = append(all, &due{files: []*openFile{f}})
		}
	}
	if err := publishTogether(all); err != nil {
		return explain(path, err)
	}
	return nil
}

// accessOf is the access that the dataset's files have.
func accessOf(dir *directory.Directory) (Access, error) {
	sessions, err := dir.Subdirectory(sessionTable.Name)
	if err != nil {
		return Access{}, err
	}
	defer sessions.Close()
	f, err := sessions.Open("schema.parquet")
	if err != nil {
		return Access{}, err
	}
	defer f.Close()
	return directory.AccessOf(f)
}

// addedName is a name that no file of the tables has: each appending has its own number.
func addedName(dir *directory.Directory, session string) (string, error) {
	taken := map[string]bool{}
	for _, table := range []string{spanTable.Name, mergedTraceTable.Name, warningTable.Name} {
		in, err := dir.Subdirectory(table)
		if err != nil {
			if err = unlessMissing(err); err != nil {
				return "", err
			}
			continue
		}
		names, err := in.Names()
		if err = errors.Join(err, in.Close()); err != nil {
			return "", err
		}
		for _, name := range names {
			taken[strings.TrimPrefix(name, ".")] = true
		}
	}
	for i := 1; ; i++ {
		if name := fmt.Sprintf("%s-merged-%03d.parquet", session, i); !taken[name] {
			return name, nil
		}
	}
}

// addRows writes a file of a table under a hidden name, nil where there are no rows.
func addRows[T any](w *writer, t *table[T], name string, rows []T) (*openFile, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	f, err := w.create(t.Name, name, t.fileColumns())
	if err != nil {
		return nil, err
	}
	if err := writeAll(f, w, t, rows); err != nil {
		f.discard()
		return nil, err
	}
	return f, nil
}
