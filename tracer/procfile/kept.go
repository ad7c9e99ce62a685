package procfile

import (
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// Kept is a file of one line that is looked at again and again: to find and open it takes
// several times as long as to read it. It stays that of the process that it was opened of.
type Kept struct{ fd int }

// Keep opens a file.
func Keep(path string) (*Kept, error) {
	fd, err := retry(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &Kept{fd}, nil
}

// Line is what it says now, "" where it cannot be read.
func (k *Kept) Line() string {
	var line [512]byte
	n, err := retry(func() (int, error) { return unix.Pread(k.fd, line[:], 0) })
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(line[:n]))
}

func (k *Kept) Close() error { return unix.Close(k.fd) }
