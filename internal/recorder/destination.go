package recorder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer"
)

// destination is the directory that a dataset is written to.
type destination struct {
	path string
	made []string // the directories that were not there before, the innermost first
}

func newDestination(path string) *destination {
	d := &destination{path: path}
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return d
		}
		d.made = append(d.made, dir)
	}
}

// has reports whether the recording can be found in the dataset: its first rows
// are written in the background.
func (d *destination) has(r tracer.Recording) bool {
	_, err := os.Stat(filepath.Join(d.path, "session", r.ID+".parquet"))
	return err == nil
}

// undo takes away a dataset that nothing was recorded into. It was empty when
// the dataset was begun, so only what a dataset is made of can be the tool's.
func (d *destination) undo() {
	for _, t := range output.Schema() {
		os.RemoveAll(filepath.Join(d.path, t.Name))
	}
	os.Remove(filepath.Join(d.path, output.ViewsFile))
	for _, dir := range d.made {
		os.Remove(dir) // fails, as it should, when something is in it
	}
}

// explain says in one sentence what to do about a dataset that cannot be
// written. written is whether something is in it already.
func (d *destination) explain(err error, written bool) error {
	switch {
	case errors.Is(err, output.ErrNotEmpty):
		return fmt.Errorf("%s is not empty: choose another --output, or remove what is in it", d.path)
	case errors.Is(err, output.ErrFull) && written:
		return fmt.Errorf("no space left for %s: the recording ended early, and what was written before can be queried; free some space or choose another --output", d.path)
	case errors.Is(err, output.ErrFull), errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("no space left for %s: nothing was recorded; free some space or choose another --output", d.path)
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EEXIST):
		return fmt.Errorf("%s is not a directory, or lies below a file: choose another --output", d.path)
	case !written && (errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EROFS)):
		return fmt.Errorf("%s cannot be written (%w): choose another --output", d.path, cause(err))
	}
	return err
}

// cause is the system's own error.
func cause(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}
