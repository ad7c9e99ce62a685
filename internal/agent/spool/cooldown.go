package spool

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// An empty file for each job says, by its time, when its last window was: a worker that
// begins again keeps its cool-down, so that nobody gets more windows out of an agent by
// ending it.

// forgotten is how long such a file stays: longer than a cool-down can be.
const forgotten = 7 * 24 * time.Hour

// windowFile is a job's. Jobs choose their names: none is part of a path.
func windowFile(spool, job string) string {
	sum := sha256.Sum256([]byte(job))
	return filepath.Join(spool, windowsName, hex.EncodeToString(sum[:16]))
}

// LastWindow is when the last window of a job was on this node, the zero time if there
// is none. What a clock that was put back has left in the future is no later than now.
func LastWindow(spool, job string, now time.Time) (time.Time, error) {
	info, err := os.Stat(windowFile(spool, job))
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
	directory := filepath.Join(spool, windowsName)
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(directory)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && at.Sub(info.ModTime()) > forgotten {
			_ = os.Remove(filepath.Join(directory, e.Name())) // the next time else
		}
	}
	name := windowFile(spool, job)
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		return err
	}
	return os.Chtimes(name, at, at)
}
