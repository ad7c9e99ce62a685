package recorder

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/ebpfprof/ebpfprof/output"
)

// destination is the directory that a dataset is written to.
type destination struct {
	path    string
	dataset *output.Dataset
}

// has reports whether the recording can be found in the dataset: its first rows
// are written in the background.
func (d *destination) has() bool {
	for _, t := range d.dataset.Stats() {
		if t.Table == "session" {
			return t.Files > 0
		}
	}
	return false
}

// undo takes away a dataset that nothing was recorded into. What cannot be taken
// away is no news beside what went wrong before.
func (d *destination) undo() { _ = d.dataset.Discard() }

// explain says in one sentence what to do about a dataset that cannot be
// written. written is whether something is in it already.
func (d *destination) explain(err error, written bool) error {
	switch {
	case errors.Is(err, output.ErrNotEmpty):
		return fmt.Errorf("%s is not empty: choose another --output, or remove what is in it", d.path)
	case errors.Is(err, output.ErrFull) && written:
		return fmt.Errorf("no space left for %s: the recording ended early, and what was written before can be queried; free some space or "+
			"choose another --output", d.path)
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
