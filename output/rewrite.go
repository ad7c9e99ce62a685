package output

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/directory"
	"github.com/ebpfprof/ebpfprof/output/columnfile"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// ErrForeign is wrapped by RewriteStacks' error for a file that this version
// cannot write again without losing something.
var ErrForeign = errors.New("not a stack file of this schema")

// RewriteStacks puts rows in the place of those of a file of table stack, whose
// session, metadata, owner and mode stay. The file is as it was until the new one is
// whole and on disk. It must not be a link, nor lie behind one that another user made.
func RewriteStacks(path string, rows []event.Stack) error {
	dir, err := directory.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("rewriting %s: %w", path, err)
	}
	name := filepath.Base(path)
	summary, access, err := inspect(dir, name)
	if err == nil {
		err = checkRewritable(summary, len(rows))
	}
	if err != nil {
		return fmt.Errorf("rewriting %s: %w", path, errors.Join(err, dir.Close()))
	}
	dir = dir.With(access)
	w, err := newWriter(dir, 0)
	if err != nil {
		return err
	}
	w.session, w.tool = summary.Metadata[MetadataSession], summary.Metadata[MetadataToolVersion]
	f, err := w.createIn(dir, stackTable.Name, name, stackTable.fileColumns())
	if err != nil {
		return explain(dir.Path(), err)
	}
	if err := writeAll(f, w, stackTable, rows); err != nil {
		f.discard()
		return explain(dir.Path(), err)
	}
	if err := f.publish(); err != nil {
		return explain(dir.Path(), err)
	}
	return nil
}

// inspect reads what a file's footer says, and whose it is.
func inspect(dir *directory.Directory, name string) (columnfile.Summary, Access, error) {
	f, err := dir.Open(name)
	if err != nil {
		return columnfile.Summary{}, Access{}, err
	}
	defer f.Close()
	access, err := directory.AccessOf(f)
	if err != nil {
		return columnfile.Summary{}, Access{}, err
	}
	summary, err := columnfile.CheckFile(f)
	return summary, access, err
}

// checkRewritable refuses files of other tables and of later schemas, and rows
// that cannot be the file's.
func checkRewritable(s columnfile.Summary, rows int) error {
	switch version := s.Metadata[MetadataSchemaVersion]; {
	case s.Metadata[MetadataTable] != stackTable.Name || s.Metadata[MetadataSession] == "":
		return fmt.Errorf("%w: ebpfprof did not write it", ErrForeign)
	case laterSchema(version):
		return fmt.Errorf("%w: it has schema %s, this version writes %s", ErrForeign, version, SchemaVersion)
	case s.Rows != int64(rows):
		return fmt.Errorf("it has %d rows, not %d", s.Rows, rows)
	}
	return nil
}

// laterSchema reports a version with columns that this one does not know, or
// that is no version.
func laterSchema(version string) bool {
	theirs, ours := strings.Split(version, "."), strings.Split(SchemaVersion, ".")
	if len(theirs) != 3 || theirs[0] != ours[0] {
		return true
	}
	minor, err := strconv.Atoi(theirs[1])
	known, _ := strconv.Atoi(ours[1])
	return err != nil || minor > known
}
