// Package procfile reads small files that the kernel makes up as they are read:
// those of /proc and /sys.
//
// The package is no part of the public API: it may change with any version.
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
	content, _, err := read(path, limit, false)
	return content, err
}

// ReadLasting is Read of a file that is empty once what it tells of is gone, also for
// those who have it open: proc answers a page a read, and where that goes meanwhile, the
// rest is missing. lasted says that it was still there when all had been read.
func ReadLasting(path string, limit int) (content []byte, lasted bool, err error) {
	return read(path, limit, true)
}

func read(path string, limit int, again bool) (content []byte, lasted bool, err error) {
	fd, err := retry(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, false, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	content = make([]byte, 0, 4<<10)
	for limit == 0 || len(content) < limit {
		if len(content) == cap(content) {
			content = append(content, make([]byte, 3*cap(content))...)[:len(content)]
		}
		end := cap(content)
		if limit > 0 {
			end = min(end, limit)
		}
		n, err := retry(func() (int, error) { return unix.Read(fd, content[len(content):end]) })
		if err != nil {
			return nil, false, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		if n == 0 {
			break
		}
		content = content[:len(content)+n]
	}
	if again {
		n, err := retry(func() (int, error) { return unix.Pread(fd, make([]byte, 1), 0) })
		lasted = err == nil && n > 0
	}
	return content, lasted, nil
}

// retry repeats a call that a signal has interrupted, as the runtime's own do.
func retry(call func() (int, error)) (n int, err error) {
	for n, err = call(); errors.Is(err, unix.EINTR); {
		n, err = call()
	}
	return n, err
}
