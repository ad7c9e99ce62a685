package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// errAnotherFile: a name leads to another file than the one that maps told of.
var errAnotherFile = errors.New("another file than the mapped one")

// openAs opens the file behind a name if it is the library's. O_PATH first: to
// open a device or a FIFO does something, and the name may lead there.
func (l *Library) openAs(name string) (*os.File, error) {
	place, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(place)
	var stat unix.Stat_t
	if err := unix.Fstat(place, &stat); err != nil {
		return nil, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Ino != l.Inode {
		return nil, errAnotherFile
	}
	file, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", place))
	if err != nil {
		return nil, err
	}
	if (Device{unix.Major(stat.Dev), unix.Minor(stat.Dev)}) == l.Device || l.isMapped(file) {
		return file, nil
	}
	file.Close()
	return nil, errAnotherFile
}

// isMapped compares what maps would say of a file with what it said of the
// library. The device there is the superblock's, which stat does not give on
// btrfs and overlayfs; so a page of the file is mapped here, and our own maps read.
func (l *Library) isMapped(file *os.File) bool {
	page, err := unix.Mmap(int(file.Fd()), 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return false
	}
	defer unix.Munmap(page)
	maps, err := procfile.Read("/proc/self/maps", 0)
	if err != nil {
		return false
	}
	address := uint64(uintptr(unsafe.Pointer(&page[0])))
	for line := range bytes.Lines(maps) {
		m, ok := parseMapping(bytes.TrimSuffix(line, []byte{'\n'}))
		if ok && address >= m.start && address < m.end {
			return m.device == l.Device && m.inode == l.Inode
		}
	}
	return false
}
