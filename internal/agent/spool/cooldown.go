package spool

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/internal/directory"
)

// An empty file for each job says, by its time, when its last window was: a worker that
// begins again keeps its cool-down, so that nobody gets more windows out of an agent by
// ending it.

// forgotten is how long such a file stays: longer than a cool-down can be.
const forgotten = 7 * 24 * time.Hour

// windowFile is a job's. Jobs choose their names: none is part of a path.
func windowFile(job string) string {
	sum := sha256.Sum256([]byte(job))
	return hex.EncodeToString(sum[:16])
}

// windows opens the directory of those files, in the spool: nothing is read or written through
// a link.
func windows(spool string) (*directory.Directory, error) {
	d, err := own(spool)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Directory(windowsName)
}

// LastWindow is when the last window of a job was on this node, the zero time if there
// is none. What a clock that was put back has left in the future is no later than now.
func LastWindow(spool, job string, now time.Time) (time.Time, error) {
	d, err := windows(spool)
	if err != nil {
		return time.Time{}, err
	}
	defer d.Close()
	info, err := d.Info(windowFile(job))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, err
	case info.ModTime().After(now):
		return now, nil
	}
	return info.ModTime(), nil
}

// KeepWindow remembers that a job's window is or was at a time.
func KeepWindow(spool, job string, at time.Time) error {
	d, err := windows(spool)
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if info, err := d.Info(name); err == nil && at.Sub(info.ModTime()) > forgotten {
			_ = d.Remove(name) // the next time else
		}
	}
	file, err := d.Create(windowFile(job))
	if err != nil {
		return err
	}
	defer file.Close()
	when := unix.NsecToTimeval(at.UnixNano())
	return unix.Futimes(int(file.Fd()), []unix.Timeval{when, when})
}
