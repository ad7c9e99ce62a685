package process

import (
	"bytes"
	"fmt"
	"io/fs"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// MaxMaps bounds what is read of a process's maps, bytes. A job with PyTorch and
// CUDA has some 0.5 MB; 65,530 mappings of files with long names make 270, and as
// much work each time they are read.
const MaxMaps = 16 << 20

// maxLooks bounds how often maps are looked at that went meanwhile.
const maxLooks = 100

// readMaps reads maps up to the limit, in whole lines. Its error is ESRCH where there are
// none: of a process that ends, its memory goes before it is a zombie.
func (f FS) readMaps(pid int) (maps []byte, cut bool, err error) {
	for range maxLooks {
		maps, lasted, err := f.text(pid, MaxMaps, "maps")
		if err != nil {
			return nil, false, err
		}
		if lasted && len(maps) == MaxMaps {
			return maps[:bytes.LastIndexByte(maps, '\n')+1], true, nil
		}
		if lasted {
			return maps, false, nil
		}
		// They may have given way to another program's, and on a busy machine those to a
		// third's before this has the CPU again: how often they went says nothing.
		s, err := f.stat(pid)
		if err != nil {
			return nil, false, err
		}
		if s.exiting() || s.exited() || s.kernelThread() || s.living != 0 {
			break
		}
	}
	return nil, false, &fs.PathError{Op: "read", Path: f.pidPath(pid, "maps"), Err: unix.ESRCH}
}

// leftOut is what of a process is beyond the limits, as it was last looked at.
type leftOut struct{ mapsCut, files int64 }

// LeftOut says what of the process was not looked at the last time: the mappings
// beyond MaxMaps, and how many files beyond MaxLibraries.
func (p *Process) LeftOut() (mapsCut bool, files int) {
	return atomic.LoadInt64(&p.left.mapsCut) != 0, int(atomic.LoadInt64(&p.left.files))
}

// readMaps reads the lines of the maps; ErrExited where the process has none any
// more, and vanished's errors.
func (p *Process) readMaps() ([]byte, error) {
	maps, cut, err := p.fs.readMaps(p.through())
	if before := p.through(); err != nil && p.Alive() && p.through() != before { // the thread has ended meanwhile, and others go on
		maps, cut, err = p.fs.readMaps(p.through())
	}
	if err != nil {
		return nil, vanished(p.PID, "reading the maps", err)
	}
	atomic.StoreInt64(&p.left.mapsCut, int64(map[bool]int{true: 1}[cut]))
	return maps, nil
}

// mapping is one line of /proc/PID/maps that maps a file.
type mapping struct {
	start, end uint64
	offset     uint64
	device     Device
	inode      uint64
	executable bool
	path       []byte
}

// Device is the device number of a filesystem as maps prints it.
type Device struct{ Major, Minor uint32 }

func (d Device) String() string { return fmt.Sprintf("%02x:%02x", d.Major, d.Minor) }

// eachMapping yields the file mappings among the lines of maps:
//
//	7f0e8c000000-7f0e8c021000 r-xp 00001000 fe:00 247278    /usr/lib/libc.so.6
func eachMapping(maps []byte, yield func(mapping)) error {
	for len(maps) > 0 {
		line, rest, _ := bytes.Cut(maps, []byte{'\n'})
		maps = rest
		m, ok := parseMapping(line)
		if !ok {
			return fmt.Errorf("unreadable line in maps: %.80q", line)
		}
		if m.inode != 0 {
			yield(m)
		}
	}
	return nil
}

func parseMapping(line []byte) (m mapping, ok bool) {
	s := scanner{rest: line}
	m.start = s.number(16, '-')
	m.end = s.number(16, ' ')
	permissions := s.until(' ')
	m.offset = s.number(16, ' ')
	m.device.Major = uint32(s.number(16, ':'))
	m.device.Minor = uint32(s.number(16, ' '))
	m.inode = s.number(10, ' ')
	if s.bad || len(permissions) < 4 || m.end < m.start {
		return mapping{}, false
	}
	m.executable = permissions[2] == 'x'
	m.path = bytes.TrimLeft(s.rest, " ")
	return m, true
}

// scanner cuts the fields of a line; the last may lack its separator.
type scanner struct {
	rest []byte
	bad  bool
}

func (s *scanner) until(separator byte) []byte {
	field, rest, _ := bytes.Cut(s.rest, []byte{separator})
	s.rest = rest
	return field
}

func (s *scanner) number(base uint64, separator byte) uint64 {
	field := s.until(separator)
	value := uint64(0)
	for _, c := range field {
		digit := uint64(99)
		switch {
		case c >= '0' && c <= '9':
			digit = uint64(c - '0')
		case c >= 'a' && c <= 'f':
			digit = uint64(c-'a') + 10
		}
		if digit >= base {
			s.bad = true
			return 0
		}
		value = value*base + digit
	}
	if len(field) == 0 || len(field) > 20 {
		s.bad = true
	}
	return value
}

// unescape undoes what maps does to newlines in a path.
func unescape(path []byte) string {
	return string(bytes.ReplaceAll(path, []byte(`\012`), []byte{'\n'}))
}

// Mappers lists the processes that map the file executable: those whom a probe
// on it hits when it is not limited to some. Processes that may not be looked
// at are left out. The numbers are Library's.
func Mappers(device Device, inode uint64) ([]int, error) { return FS{}.Mappers(device, inode) }

// Mappers is the function Mappers on a given proc filesystem.
func (f FS) Mappers(device Device, inode uint64) ([]int, error) {
	pids, err := f.pids()
	if err != nil {
		return nil, err
	}
	wanted := []byte(" " + device.String() + " " + strconv.FormatUint(inode, 10) + " ")
	var found []int
	for _, pid := range pids {
		maps, cut, err := f.readMaps(pid)
		if err == nil && (cut || mapsExecutable(maps, wanted)) { // it may, beyond
			found = append(found, pid)
		}
	}
	return found, nil
}

// mapsExecutable looks for a line with the wanted device and inode that has
// execute permission.
func mapsExecutable(maps, wanted []byte) bool {
	for {
		at := bytes.Index(maps, wanted)
		if at < 0 {
			return false
		}
		line := maps[bytes.LastIndexByte(maps[:at], '\n')+1 : at]
		// start-end r-xp offset
		if fields := bytes.Fields(line); len(fields) == 3 && len(fields[1]) >= 3 && fields[1][2] == 'x' {
			return true
		}
		maps = maps[at+len(wanted):]
	}
}
