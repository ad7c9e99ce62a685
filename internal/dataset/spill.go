package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// spillPrefix begins the name of every spill directory; the rest is random.
const spillPrefix = "ebpfprof-dataset-"

// spill is where DuckDB puts what does not fit into memory: a directory of ours
// that no other user can foresee, enter, or put in our way. The lock on it says
// that its process lives; the kernel drops it however the process ends.
type spill struct {
	path string
	lock *os.File
}

// newSpill makes the directory, and removes those that killed queries left. DuckDB
// would make one itself, readable by all, under the name that it gets.
func newSpill() (*spill, error) {
	removeStaleSpills()
	var failed error
	for range 3 { // another query may take for stale what is not locked yet
		path, err := os.MkdirTemp("", spillPrefix) // 0700, and never one that exists
		if err != nil {
			return nil, err
		}
		lock, err := lockSpill(path)
		if err == nil {
			return &spill{path, lock}, nil
		}
		failed = errors.Join(err, os.RemoveAll(path))
	}
	return nil, failed
}

// lockSpill fails for a directory that is not ours, or that a process has locked.
func lockSpill(path string) (*os.File, error) {
	dir, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	info, err := dir.Stat()
	if err == nil && (!ownedByUs(info) || info.Mode().Perm() != 0o700) {
		err = errors.New(path + " is not a directory of this process's user alone")
	}
	if err == nil {
		err = syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err == nil { // it may have been removed before it was locked
		_, err = os.Lstat(path)
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

func ownedByUs(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// removeStaleSpills leaves alone what it cannot lock: another user's, a running
// query's, or nothing of this program's.
func removeStaleSpills() {
	paths, _ := filepath.Glob(filepath.Join(escapeGlob(os.TempDir()), spillPrefix+"*"))
	for _, path := range paths {
		if lock, err := lockSpill(path); err == nil {
			os.RemoveAll(path)
			lock.Close()
		}
	}
}

func (s *spill) remove() error {
	if s == nil {
		return nil
	}
	return errors.Join(os.RemoveAll(s.path), s.lock.Close())
}
