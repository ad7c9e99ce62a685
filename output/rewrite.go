package output

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/output/columnfile"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// ErrForeign is wrapped by RewriteStacks' error for a file that this version
// cannot write again without losing something.
var ErrForeign = errors.New("not a stack file of this schema")

// RewriteStacks puts rows in the place of those of a file of table stack, whose
// session and metadata stay. The file is as it was until the new one is whole
// and on disk.
func RewriteStacks(path string, rows []event.Stack) error {
	summary, err := columnfile.Check(path)
	if err != nil {
		return fmt.Errorf("rewriting %s: %w", path, err)
	}
	if err := checkRewritable(summary, len(rows)); err != nil {
		return fmt.Errorf("rewriting %s: %w", path, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	w, err := newWriter("", 0)
	if err != nil {
		return err
	}
	w.session, w.tool = summary.Metadata[MetadataSession], summary.Metadata[MetadataToolVersion]
	f, err := w.createIn(filepath.Dir(path), stackTable.Name, filepath.Base(path), stackTable.fileColumns())
	if err != nil {
		return explain(filepath.Dir(path), err)
	}
	err = errors.Join(f.file.Chmod(info.Mode().Perm()), writeAll(f, w, stackTable, rows))
	if err != nil {
		f.discard()
		return explain(filepath.Dir(path), err)
	}
	if err := f.publish(); err != nil {
		return explain(filepath.Dir(path), err)
	}
	return nil
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
