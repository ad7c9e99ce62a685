package process

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// Whoever reads a page of another process's memory that is not there fetches it, and keeps the lock of
// that memory meanwhile. Where the page's file is served by a user that may last for ever, and whoever puts
// a probe into any file that the process maps waits for the lock, with all forks of the machine
// behind it. So a reader looks first, and leaves such pages alone.

const (
	pagePresent = 1 << 63 // Documentation/admin-guide/mm/pagemap.rst
	pageSwapped = 1 << 62
)

// errAbsent: a page that is not there, and that a user may have to fetch.
const errAbsent = unix.EFAULT

// readable is how much of a part of a process's memory can be read without waiting for whoever serves a
// file; absent: what comes behind it can not. pages is its pagemap.
func readable(pid, pages int, at, length uint64) (there uint64, absent bool) {
	const most = 1024 // pages a look
	end := at + length
	for from := at &^ (pageSize - 1); from < end; {
		n := min((end-from+pageSize-1)/pageSize, most)
		flags := make([]byte, 8*n)
		got, err := readWhole(pages, flags, int64(from/pageSize*8))
		if err != nil || got < 8 {
			return max(from, at) - at, false
		}
		for i := 0; i+8 <= got; i += 8 {
			page := from + uint64(i)/8*pageSize
			if binary.NativeEndian.Uint64(flags[i:])&(pagePresent|pageSwapped) == 0 && !fetchedByRoot(pid, page) {
				return max(page, at) - at, true
			}
		}
		from += uint64(got) / 8 * pageSize
	}
	return length, false
}

// fetchedByRoot reports whether a page belongs to no file, or to one of a block device, which root alone
// can mount.
func fetchedByRoot(pid int, address uint64) bool {
	inode, major, ok := mappedAt(FS{}.pidPath(pid, "maps"), address)
	return ok && (inode == 0 || major != 0)
}

// mappedAt is what file a process has at an address; ok without a mapping as well, for there is
// nothing to fetch.
func mappedAt(maps string, address uint64) (inode uint64, major uint32, ok bool) {
	fd, err := unix.Open(maps, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, 0, false
	}
	defer unix.Close(fd)
	q := mapQuery{size: uint64(unsafe.Sizeof(mapQuery{})), address: address}
	switch _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), procmapQuery, uintptr(unsafe.Pointer(&q))); errno {
	case 0:
		return q.inode, q.major, true
	case unix.ENOENT:
		return 0, 0, true
	}
	text, err := procfile.Read(maps, MaxMaps) // before 6.11
	if err != nil {
		return 0, 0, false
	}
	for line := range bytes.Lines(text) {
		if m, ok := parseMapping(bytes.TrimSuffix(line, []byte{'\n'})); ok && address >= m.start && address < m.end {
			return m.inode, m.device.Major, true
		}
	}
	return 0, 0, true
}

// argumentsReadable reports whether a process's command line or environment can be read so.
func argumentsReadable(pid int, name string) bool {
	text, err := procfile.Read(FS{}.pidPath(pid, "stat"), 4096)
	if err != nil {
		return true // it says so itself
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	first := map[string]int{"cmdline": 45, "environ": 47}[name] // arg_start and env_start of proc_pid_stat(5)
	if first+1 >= len(fields) {
		return true
	}
	start, _ := strconv.ParseUint(fields[first], 10, 64)
	end, _ := strconv.ParseUint(fields[first+1], 10, 64)
	if name == "cmdline" && end > start {
		// A process that gives itself a title has it run on into the environment.
		end = max(end, min(start+maxCommand, parseLast(fields)))
	}
	if end <= start {
		return true
	}
	pages, err := unix.Open(FS{}.pidPath(pid, "pagemap"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err == unix.EACCES || err == unix.EPERM || err == unix.ENOENT || err == unix.ESRCH
	}
	defer unix.Close(pages)
	_, absent := readable(pid, pages, start, min(end-start, maxEnvironment))
	return !absent
}

// parseLast is env_end.
func parseLast(fields []string) uint64 {
	if len(fields) < 49 {
		return 0
	}
	end, _ := strconv.ParseUint(fields[48], 10, 64)
	return end
}
