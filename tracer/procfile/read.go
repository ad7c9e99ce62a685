// Package procfile reads small files that the kernel makes up as they are read:
// those of /proc and /sys.
package procfile

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Read reads a file, at most limit bytes of it; 0 is no limit. Errors are
// *fs.PathError. An os.File of proc would be registered with the Go runtime's
// poller, which wakes a second thread: for a line of text that costs more than
// reading it. And os.ReadFile asks for 512 bytes first, where proc answers a page
// a read.
func Read(path string, limit int) ([]byte, error) {
	fd, err := retry(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	buffer := make([]byte, 0, 4<<10)
	for limit == 0 || len(buffer) < limit {
		if len(buffer) == cap(buffer) {
			buffer = append(buffer, make([]byte, 3*cap(buffer))...)[:len(buffer)]
		}
		end := cap(buffer)
		if limit > 0 {
			end = min(end, limit)
		}
		n, err := retry(func() (int, error) { return unix.Read(fd, buffer[len(buffer):end]) })
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		if n == 0 {
			break
		}
		buffer = buffer[:len(buffer)+n]
	}
	return buffer, nil
}

// retry repeats a call that a signal has interrupted, as the runtime's own do.
func retry(call func() (int, error)) (n int, err error) {
	for n, err = call(); errors.Is(err, unix.EINTR); {
		n, err = call()
	}
	return n, err
}
