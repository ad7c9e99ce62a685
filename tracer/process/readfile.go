package process

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ReadFile reads a file that a process names: by its path in that process's mount
// namespace, whose symbolic links are followed there and not in ours. Only regular files
// of at most limit bytes are read, and nothing else is opened: to open a device or a FIFO
// does something.
func ReadFile(pid int, path string, limit int64) ([]byte, error) {
	root, err := unix.Open(FS{}.pidPath(pid, "root"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(root)
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT}
	place, err := unix.Openat2(root, path, &how)
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

var errOdd = fmt.Errorf("no regular file, or a larger one than is read: %w", fs.ErrInvalid)
