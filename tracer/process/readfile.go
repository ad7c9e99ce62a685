package process

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ReadFile reads a file that a process names: by its path in that process's mount
// namespace, whose symbolic links are followed there and not in ours. Only regular files
// of at most limit bytes are read, and nothing else is opened: to open a device or a FIFO
// does something.
func ReadFile(pid int, path string, limit int64) ([]byte, error) {
	place, err := openIn(pid, path, unix.O_PATH|unix.O_CLOEXEC)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(place)
	var stat unix.Stat_t
	if err := unix.Fstat(place, &stat); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Size > limit {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errOdd}
	}
	file, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", place))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, limit+1)) // it may grow meanwhile
	if err == nil && int64(len(content)) > limit {
		err = &fs.PathError{Op: "read", Path: path, Err: errOdd}
	}
	return content, err
}

// openIn opens what a process names.
func openIn(pid int, path string, flags uint64) (int, error) {
	root, err := unix.Open(FS{}.pidPath(pid, "root"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	return unix.Openat2(root, path, &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_IN_ROOT})
}

// Entry is a file or directory of a directory.
type Entry struct {
	Name      string
	Modified  time.Time
	Directory bool
}

// maxEntries are those of one directory that are looked at.
const maxEntries = 4096

// ListDirectory lists a directory that a process names, by its path there as ReadFile has it:
// the first maxEntries of it, in no order.
func ListDirectory(pid int, path string) ([]Entry, error) {
	place, err := openIn(pid, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK|unix.O_CLOEXEC)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	directory := os.NewFile(uintptr(place), path)
	defer directory.Close()
	names, err := directory.Readdirnames(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	entries := make([]Entry, 0, len(names))
	for _, name := range names {
		var stat unix.Stat_t
		if unix.Fstatat(place, name, &stat, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue // it has gone meanwhile
		}
		entries = append(entries, Entry{name, time.Unix(stat.Mtim.Unix()), stat.Mode&unix.S_IFMT == unix.S_IFDIR})
	}
	return entries, nil
}

// SharesFiles reports whether a process names the same files as we do: it has our mount
// namespace and our root.
func SharesFiles(pid int) bool {
	for _, of := range []string{"ns/mnt", "root"} {
		its, err := os.Stat(FS{}.pidPath(pid, of))
		ours, err2 := os.Stat(FS{}.pidPath(os.Getpid(), of))
		if err != nil || err2 != nil || !os.SameFile(its, ours) {
			return false
		}
	}
	return true
}

var errOdd = fmt.Errorf("no regular file, or a larger one than is read: %w", fs.ErrInvalid)
