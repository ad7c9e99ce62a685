package process

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ReadFile reads a file that a process names: by its path in that process's mount
// namespace, whose symbolic links are followed there and not in ours. Only regular files
// of at most limit bytes are read, and nothing else is opened: to open a device or a FIFO
// does something.
func ReadFile(pid int, path string, limit int64) ([]byte, error) {
	return FS{}.content(pid, path, limit)
}

func (f FS) readFile(pid int, path string, limit int64) ([]byte, error) {
	found, err := f.lookIn(pid, path)
	if err != nil {
		return nil, err
	}
	defer found.close()
	if found.stat.Size > limit {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errOdd}
	}
	file, err := found.open(unix.S_IFREG)
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
	entries, err := list[[]Entry](pid, askEntries, pathOf{PID: pid, Path: path})
	if errors.Is(err, syscall.EINVAL) {
		err = errOdd
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return entries, nil
}

func listDirectory(pid int, path string) ([]Entry, error) {
	directory, err := FS{}.openIn(pid, path, unix.S_IFDIR)
	if err != nil {
		return nil, err
	}
	defer directory.Close()
	names, err := directory.Readdirnames(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	entries := make([]Entry, 0, len(names))
	for _, name := range names {
		var stat unix.Stat_t
		if unix.Fstatat(int(directory.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue // it has gone meanwhile
		}
		entries = append(entries, Entry{name, time.Unix(stat.Mtim.Unix()), stat.Mode&unix.S_IFMT == unix.S_IFDIR})
	}
	return entries, nil
}

// SharesFiles reports whether a process names the same files as we do: it has our mount
// namespace and our root.
func SharesFiles(pid int) bool {
	shared, err := list[bool](pid, askShares, pathOf{PID: pid})
	return err == nil && shared
}

func sharesFiles(pid int) bool {
	for _, of := range []string{"ns/mnt", "root"} {
		its, err := os.Stat(FS{}.pidPath(pid, of))
		ours, err2 := os.Stat(FS{}.pidPath(os.Getpid(), of))
		if err != nil || err2 != nil || !os.SameFile(its, ours) {
			return false
		}
	}
	return true
}
