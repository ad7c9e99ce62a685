package process

import (
	"bytes"
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// errAnotherFile: a name leads to another file than the one that maps told of.
var errAnotherFile = errors.New("another file than the mapped one")

// isFile gives what a look found on if it is the library's file.
func (l *Library) isFile(found place, err error) (place, error) {
	if err != nil {
		return place{}, err
	}
	if found.kind() != unix.S_IFREG || found.stat.Ino != l.Inode {
		found.close()
		return place{}, errAnotherFile
	}
	if (Device{unix.Major(found.stat.Dev), unix.Minor(found.stat.Dev)}) == l.Device {
		return found, nil
	}
	file, err := found.open(unix.S_IFREG)
	if err != nil {
		found.close()
		return place{}, err
	}
	defer file.Close()
	if !l.isMapped(file) {
		found.close()
		return place{}, errAnotherFile
	}
	return found, nil
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
