package process

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"

	"github.com/ebpfprof/ebpfprof/tracer/reader"
)

// What may wait for a process is not done here but by a reader (package reader): to open and read
// its files, its memory, and those files of proc that take the lock of its memory or wait for an
// exec (maps, cmdline, environ, mem, pagemap, map_files). What else proc says of it (stat, status,
// cgroup, mountinfo, links) waits for nothing. A recording of proc is read at once.

// asked is whether this proc is the machine's, and so its processes are alive.
func (f FS) asked() bool { return f.Root == "" }

// pathError is how the error of a reader is returned: one of the system's as that of the path.
func pathError(doing, path string, err error) error {
	if number := syscall.Errno(0); errors.As(err, &number) {
		return &fs.PathError{Op: doing, Path: path, Err: err}
	}
	return err
}

// text reads a file of a process in proc, at most limit bytes; 0 is no limit. lasted says that it was
// still there when all had been read (procfile.ReadLasting).
func (f FS) text(pid int, limit int, parts ...string) (content []byte, lasted bool, err error) {
	path := f.pidPath(pid, parts...)
	if !f.asked() {
		return readText(path, limit)
	}
	answer, err := reader.Ask(pid, askText, append(binary.NativeEndian.AppendUint64(nil, uint64(limit)), path...))
	if err != nil {
		return nil, false, pathError("read", path, err)
	}
	end := len(answer.Text) - 1
	if end < 0 {
		return nil, false, pathError("read", path, syscall.EIO)
	}
	return answer.Text[:end:end], answer.Text[end] != 0, nil
}

// MapsText is what /proc/PID/maps says, at most MaxMaps bytes of it. It may be cut anywhere.
func MapsText(pid int) ([]byte, error) {
	content, _, err := FS{}.text(pid, MaxMaps, "maps")
	return content, err
}

// Memory is the memory of a process as it was when it was opened: after an exec there is nothing
// in it. A reader reads it. The methods may be called from any goroutine.
type Memory struct {
	pid   int
	file  *os.File
	pages *os.File // its pagemap; nil of that itself
}

// OpenMemory opens a process's memory, by address. The errors are those of opening /proc/PID/mem, and
// reader.LateError.
func OpenMemory(pid int) (*Memory, error) { return openMemory(pid, "mem") }

// OpenPages opens what the kernel says of the pages of a process's memory: eight bytes each
// (Documentation/admin-guide/mm/pagemap.rst).
func OpenPages(pid int) (*Memory, error) { return openMemory(pid, "pagemap") }

func openMemory(pid int, name string) (*Memory, error) {
	path := FS{}.pidPath(pid, name)
	answer, err := reader.Ask(pid, askMemory, []byte(path))
	if err == nil && len(answer.Files) == 0 {
		err = syscall.EIO
	}
	if err != nil {
		return nil, pathError("open", path, err)
	}
	m := &Memory{pid: pid, file: answer.Files[0]}
	if len(answer.Files) > 1 {
		m.pages = answer.Files[1]
	}
	return m, nil
}

// longestRead is the most that one request reads.
const longestRead = 8 << 20

// ReadAt is that of io.ReaderAt; the error is io.EOF where there is no memory any more.
func (m *Memory) ReadAt(b []byte, at int64) (n int, err error) {
	if at < 0 {
		return 0, pathError("read", m.file.Name(), syscall.EINVAL)
	}
	for n < len(b) && err == nil {
		var got int
		got, err = readPiece(m.pid, m.file, m.pages, b[n:min(len(b), n+longestRead)], at+int64(n))
		n += got
	}
	return n, err
}

// readPiece reads of a file, or of memory whose pages are given.
func readPiece(pid int, file, pages *os.File, b []byte, at int64) (int, error) {
	request := binary.NativeEndian.AppendUint64(nil, uint64(at))
	request = binary.NativeEndian.AppendUint64(request, uint64(len(b)))
	request = binary.NativeEndian.AppendUint64(request, uint64(pid))
	files := []int{int(file.Fd())}
	if pages != nil {
		files = append(files, int(pages.Fd()))
	}
	answer, err := reader.Ask(pid, askPiece, request, files...)
	runtime.KeepAlive(file)
	runtime.KeepAlive(pages)
	n := copy(b, answer.Text)
	if err != nil {
		return n, pathError("read", file.Name(), err)
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Close ends the reading. A nil Memory has nothing open.
func (m *Memory) Close() error {
	if m == nil {
		return nil
	}
	if m.pages != nil {
		m.pages.Close()
	}
	return m.file.Close()
}

// digestOf is queryDigest of a process's maps.
func (p *Process) digestOf() (digest uint64, ok bool) {
	path := p.path("maps")
	if !p.fs.asked() {
		return queryDigest(path)
	}
	answer, err := reader.Ask(p.PID, askDigest, []byte(path))
	if err != nil || len(answer.Text) != 8 {
		return 0, false
	}
	return binary.NativeEndian.Uint64(answer.Text), true
}

// pathOf is a path that a process names.
type pathOf struct {
	PID   int
	Path  string
	Limit int64 // on what is read
}

// content reads a file that a process names.
func (f FS) content(pid int, path string, limit int64) ([]byte, error) {
	if !f.asked() {
		return f.readFile(pid, path, limit)
	}
	answer, err := askAbout(pid, askContent, pathOf{pid, path, limit})
	if errors.Is(err, syscall.EINVAL) {
		err = errOdd
	}
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return answer.Text, nil
}

// askAbout sends a request as JSON.
func askAbout(pid, operation int, about any) (reader.Answer, error) {
	request, err := json.Marshal(about)
	if err != nil {
		return reader.Answer{}, err
	}
	return reader.Ask(pid, operation, request)
}

// list asks for what an operation says of a name, as JSON.
func list[T any](pid, operation int, about any) (found T, err error) {
	answer, err := askAbout(pid, operation, about)
	if err == nil {
		err = json.Unmarshal(answer.Text, &found)
	}
	return found, err
}
