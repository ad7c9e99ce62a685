package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// Segment is one mapping of a library.
type Segment struct {
	Start, End uint64 // addresses in the process
	FileOffset uint64
	Executable bool
}

// Library is one file that a process maps executable: its program, a shared
// library, an extension module. Segments are all its mappings, by address.
type Library struct {
	Path     string // in the process's mount namespace, without " (deleted)"
	Device   Device
	Inode    uint64
	Deleted  bool // the file has no name any more, or its name is another file's
	Segments []Segment

	process *Process
}

// FileID is what the kernel knows a file by. Once no process holds the file, its inode number
// may be another's.
type FileID struct {
	Device Device
	Inode  uint64
}

// ID is that of the library's file.
func (l *Library) ID() FileID { return FileID{l.Device, l.Inode} }

// Libraries lists the files that the process maps executable now, in the order
// of their addresses.
func (p *Process) Libraries() ([]*Library, error) {
	maps, err := p.readMaps()
	if err != nil {
		return nil, err
	}
	return p.libraries(maps)
}

// MaxLibraries bounds the files of one process that are looked at. One with PyTorch
// maps 400; compilers of models make one for each graph. Those at the lowest
// addresses are looked at.
const MaxLibraries = 4096

func (p *Process) libraries(maps []byte) ([]*Library, error) {
	libraries, err := parseLibraries(maps)
	if err != nil {
		return nil, fmt.Errorf("reading the maps of pid %d: %w", p.PID, err)
	}
	atomic.StoreInt64(&p.left.files, int64(max(0, len(libraries)-MaxLibraries)))
	libraries = libraries[:min(len(libraries), MaxLibraries)]
	for _, l := range libraries {
		l.process = p
	}
	return libraries, nil
}

func parseLibraries(maps []byte) ([]*Library, error) {
	type key struct {
		device Device
		inode  uint64
	}
	byFile := map[key]*Library{}
	var order []*Library
	err := eachMapping(maps, func(m mapping) {
		l := byFile[key{m.device, m.inode}]
		if l == nil {
			l = &Library{Device: m.device, Inode: m.inode}
			l.Path, l.Deleted = strings.CutSuffix(unescape(m.path), " (deleted)")
			byFile[key{m.device, m.inode}] = l
			order = append(order, l)
		}
		l.Segments = append(l.Segments, Segment{m.start, m.end, m.offset, m.executable})
	})
	if err != nil {
		return nil, err
	}
	executable := order[:0]
	for _, l := range order {
		for _, s := range l.Segments {
			if s.Executable {
				executable = append(executable, l)
				break
			}
		}
	}
	return executable, nil
}

// FileOffset converts an address of the process into an offset in the file.
func (l *Library) FileOffset(address uint64) (uint64, bool) {
	for _, s := range l.Segments {
		if address >= s.Start && address < s.End {
			return s.FileOffset + address - s.Start, true
		}
	}
	return 0, false
}

// Address converts an offset in the file into an address of the process. Where
// a page of the file is mapped twice, at the border of two segments, the
// executable one wins.
func (l *Library) Address(fileOffset uint64) (uint64, bool) {
	address, found := uint64(0), false
	for _, s := range l.Segments {
		if d := fileOffset - s.FileOffset; fileOffset >= s.FileOffset && d < s.End-s.Start && (!found || s.Executable) {
			address, found = s.Start+d, true
			if s.Executable {
				break
			}
		}
	}
	return address, found
}

// Bias is what the loader added to the virtual addresses of the library's ELF
// file. A library that is loaded twice (dlmopen) has the bias of its first copy.
func (l *Library) Bias(e *elf.File) (uint64, bool) {
	address, offset, ok := e.FirstCode()
	if !ok {
		return 0, false
	}
	for _, s := range l.Segments {
		// The mapping begins on a page, the segment perhaps inside it.
		if d := offset - s.FileOffset; s.Executable && offset >= s.FileOffset && d < s.End-s.Start {
			return s.Start + d - address, true
		}
	}
	return 0, false
}

// Via says through which name a library's file was reached.
type Via string

// The names of a library's file.
const (
	// ViaMapFiles: /proc/PID/map_files, the mapped file itself, whatever
	// became of its name. It needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN.
	ViaMapFiles Via = "map_files"
	// ViaRoot: the path below /proc/PID/root.
	ViaRoot Via = "root"
)

// Open opens the very file that the process has mapped, also when it was deleted
// or replaced or is in another mount namespace, and says through which name. What
// is behind a name is looked at before it is opened, and must be a regular file
// of the device and inode that maps told: between the two the process may have
// mapped another file in its place. Nothing can be put in the place of what the
// descriptor leads to, and its inode is nobody else's for as long as it is open.
// The errors are ErrExited and ErrPermission, and ErrNotFound for a deleted file
// that may not be opened through map_files.
func (l *Library) Open() (file *os.File, via Via, err error) {
	opened, err := l.OpenFile()
	if err != nil {
		return nil, "", err
	}
	if opened.place != nil {
		opened.place.Close()
	}
	return opened.Contents, opened.Via, nil
}

// OpenFile is Open for who reads the file, or puts probes into it.
func (l *Library) OpenFile() (*Opened, error) {
	p := l.process
	q := &fileRequest{Path: l.Path, Deleted: l.Deleted, Device: l.Device, Inode: l.Inode}
	for _, s := range l.Segments {
		q.Starts = append(q.Starts, [2]uint64{s.Start, s.End})
	}
	opened, first, last, err := p.openFile(q)
	switch {
	case opened != nil:
		return opened, nil
	case !p.Alive():
		return nil, &Error{p.PID, ErrExited, errors.Join(err, last)}
	case err != nil:
		return nil, err
	case errors.Is(last, fs.ErrPermission):
		return nil, &Error{p.PID, ErrPermission, last}
	case errors.Is(last, unix.EFBIG):
		return nil, &servedError{l.Path}
	case errors.Is(first, fs.ErrPermission):
		return nil, &LibraryError{PID: p.PID, Path: l.Path, Reason: ErrPermission}
	}
	return nil, &LibraryError{PID: p.PID, Path: l.Path, Reason: ErrNotFound}
}

// servedError: a file that a user may serve is larger than what is copied.
type servedError struct{ path string }

func (e *servedError) Error() string {
	return fmt.Sprintf("%s is on a file system that a user may serve, and too large to be copied from there", e.path)
}

// OpenELF parses the library's file. Errors as Open's and elf.New's.
func (l *Library) OpenELF() (*elf.File, error) {
	opened, err := l.OpenFile()
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	e, err := opened.ELF()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.Path, err)
	}
	return e, nil
}

// Name is the file's name without its directory.
func (l *Library) Name() string { return filepath.Base(l.Path) }

// LibraryError says why the file of a library cannot be reached.
type LibraryError struct {
	PID    int
	Path   string
	Reason error // ErrPermission or ErrNotFound
}

func (e *LibraryError) Error() string {
	if e.Reason == ErrPermission {
		return fmt.Sprintf("%s, which pid %d has mapped, was deleted or replaced: "+
			"run with CAP_CHECKPOINT_RESTORE, or restart the job", e.Path, e.PID)
	}
	return fmt.Sprintf("%s, which pid %d has mapped, is gone: restart the job", e.Path, e.PID)
}

func (e *LibraryError) Unwrap() error { return e.Reason }
