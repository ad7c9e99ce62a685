package unwinding

import (
	"errors"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// State says what became of a file's table.
type State string

// The states of a file.
const (
	Waiting State = "waiting" // for its turn; meanwhile frame pointers are tried
	Ready   State = "ready"
	Absent  State = "absent" // it has no table; Reason says why
)

// inode is what a mapping says of its file.
type inode struct {
	device process.Device
	number uint64
}

// file is one file, or several with the same contents.
type file struct {
	number  uint32 // in the kernel
	path    string
	state   State
	reason  error
	size    int // of .eh_frame
	code    []elf.CodeSegment
	compat  bool // 32-bit code
	mappers map[int]bool
	unused  time.Time // since when no process maps it
	image   *image
	rows    int
	took    time.Duration
	ready   bpf.NativeWalkUnwindState // the state that the kernel gets once the table is there

	of *share // of the process that mapped it first

	elf *elf.File // until the table is made
}

// addressAt is the file's own address of the byte at which a mapping begins.
func (f *file) addressAt(offset uint64) (uint64, bool) {
	page := uint64(os.Getpagesize() - 1)
	for _, s := range f.code {
		// A mapping begins on a page, the segment perhaps inside of it.
		if offset >= s.Offset&^page && offset < s.Offset+s.Size {
			return s.Address - s.Offset + offset, true
		}
	}
	return 0, false
}

// files are those that processes map, or mapped not long ago. The Unwinder's lock is
// held for all that it does.
type files struct {
	byInode  map[inode]*file
	byOrigin map[string]*file // elf.File.Origin
	vdsoFile *file
	reading  map[*file]bool // of the process whose maps were read last: soon to be mapped by it
	room     *room
	queue    *queue
}

func newFiles(in *room, to *queue) files {
	return files{byInode: map[inode]*file{}, byOrigin: map[string]*file{}, room: in, queue: to}
}

// find returns the file of a library that a process maps, new or known.
func (x *files) find(l *process.Library, by *share) *file {
	id := inode{l.Device, l.Inode}
	if f, ok := x.byInode[id]; ok {
		return f
	}
	e, err := l.OpenELF()
	if err != nil {
		f := &file{path: l.Path, state: Absent, reason: err, compat: errors.Is(err, elf.Err32Bit), mappers: map[int]bool{}}
		x.byInode[id] = f
		return f
	}
	size, changed, known := e.LastChange()
	f := x.findELF(l.Path, e, by)
	x.byInode[id] = f
	if known {
		x.room.tellInode(f, id, size, changed)
	}
	return f
}

// findELF returns the file of an ELF's origin, and queues a new one.
func (x *files) findELF(path string, e *elf.File, by *share) *file {
	key := e.Origin()
	if key == "" {
		key = path // the vDSO
	}
	if f, ok := x.byOrigin[key]; ok {
		e.Close()
		return f
	}
	f := &file{path: path, code: e.CodeSegments(), mappers: map[int]bool{}, of: by}
	var contents []byte
	err := elf.Guard(func() { contents, _, _ = e.UnwindFrames() })
	if err == nil && len(contents) == 0 {
		err = unwind.ErrNoFrames
	}
	if err == nil {
		f.number, err = x.room.newNumber(by)
	}
	if err != nil {
		x.room.refused.count(err, by)
		f.state, f.reason = Absent, err
		e.Close()
		return f
	}
	f.state, f.elf, f.size = Waiting, e, len(contents)
	x.byOrigin[key] = f
	x.queue.add(f)
	return f
}

// unused are the files whose tables no process needs, those first that were unused
// longest; of one share's user only, unless that is nil.
func (x *files) unused(of *share) (unused []*file) {
	for _, f := range x.byOrigin {
		if len(f.mappers) == 0 && !x.reading[f] && (f.state == Ready || f.state == Absent) && (of == nil || f.of != nil &&
			(f.of == of || f.of.user == of.user && of.user != nil)) {
			unused = append(unused, f)
		}
	}
	slices.SortFunc(unused, func(a, b *file) int { return a.unused.Compare(b.unused) })
	return unused
}

// drop forgets files whose tables were taken out.
func (x *files) drop(gone []*file) {
	if slices.Contains(gone, x.vdsoFile) {
		x.vdsoFile = nil
	}
	maps.DeleteFunc(x.byOrigin, func(_ string, f *file) bool { return slices.Contains(gone, f) })
}

// abandon gives up a file that no process maps and whose table is not begun.
func (x *files) abandon(f *file) {
	if len(f.mappers) > 0 || !x.queue.remove(f) {
		return
	}
	f.elf.Close()
	f.elf, f.state = nil, Absent
	x.drop([]*file{f})
	x.room.retire(f) // a child that was forked a moment ago has its number
}

// leaves is how many leaves of the kernel's a file's table takes.
func (f *file) leaves() int {
	if f.image == nil {
		return 0
	}
	return f.image.count
}
