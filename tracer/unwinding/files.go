package unwinding

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize"
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
	code    []symbolize.CodeSegment
	compat  bool // 32-bit code
	mappers map[int]bool
	unused  time.Time // since when no process maps it
	image   run
	rows    int
	took    time.Duration
	ready   bpf.NativeWalkUnwindState // what the kernel is told when the table is there

	elf *symbolize.ELF // until the table is made
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

// find returns the file of a library, new or known.
func (u *Unwinder) find(l *process.Library) *file {
	id := inode{l.Device, l.Inode}
	if f, ok := u.byInode[id]; ok {
		return f
	}
	e, err := l.OpenELF()
	if err != nil {
		f := &file{path: l.Path, state: Absent, reason: err, compat: errors.Is(err, symbolize.Err32Bit), mappers: map[int]bool{}}
		u.byInode[id] = f
		return f
	}
	f := u.findELF(l.Path, e)
	u.byInode[id] = f
	return f
}

// findELF returns the file with an ELF's contents, and queues a new one.
func (u *Unwinder) findELF(path string, e *symbolize.ELF) *file {
	var key unwind.Key
	var err error
	if fault := symbolize.Guard(func() { key, err = unwind.KeyOf(e) }); fault != nil {
		err = fault
	}
	if f, ok := u.byKey[key]; ok && err == nil {
		e.Close()
		return f
	}
	f := &file{path: path, code: e.CodeSegments(), mappers: map[int]bool{}}
	if err == nil {
		f.number, err = u.newNumber()
	}
	if err != nil {
		f.state, f.reason = Absent, err
		e.Close()
		return f
	}
	contents, _, _ := e.UnwindFrames()
	f.state, f.elf, f.size = Waiting, e, len(contents)
	u.byKey[key] = f
	u.enqueue(f)
	return f
}

// newNumber is a file number that no mapping has.
func (u *Unwinder) newNumber() (uint32, error) {
	if n := len(u.numbers); n > 0 {
		number := u.numbers[n-1]
		u.numbers = u.numbers[:n-1]
		return number, nil
	}
	if u.nextNumber >= maxFiles {
		return 0, fmt.Errorf("%w: more than %d files", ErrNoRoom, maxFiles)
	}
	u.nextNumber++
	return u.nextNumber - 1, nil
}

// publish puts a table into the kernel and lets walks use it.
func (u *Unwinder) publish(f *file, t *unwind.Table) error {
	count := len(t.Leaves) / unwind.LeafBytes
	first, err := u.room(count)
	if err != nil {
		return err
	}
	image := run{first, count}
	numbers, err := u.rules.numbersOf(t.Rules)
	if err != nil {
		u.leaves.release(image)
		return err
	}
	for i := range count {
		t.Renumber(i, u.leaves.leaf(first+i), numbers)
	}
	entry := &bpf.NativeWalkUnwindFile{Base: t.Base, Leaf: uint32(first), Pages: uint32(t.Pages), PageBits: t.PageBits, Sequences: uint32(t.SequenceLeaf())}
	if u.generation < math.MaxUint16 {
		u.generation++
		entry.Generation = u.generation
	}
	// The state last: an entry is not written in one piece.
	for _, entry.State = range []uint8{uint8(bpf.NativeWalkUnwindStateFILE_NO_TABLE), uint8(max(f.ready, bpf.NativeWalkUnwindStateFILE_READY))} {
		if err := u.tables.putFile(f.number, entry); err != nil {
			u.leaves.release(image)
			return fmt.Errorf("writing the unwind table's place: %w", err)
		}
	}
	f.state, f.image, f.rows = Ready, image, t.Rows
	return nil
}

// room finds leaves, if need be those of files that no process maps any more.
func (u *Unwinder) room(count int) (int, error) {
	u.reclaim(time.Now().Add(-retirement))
	for {
		first, err := u.leaves.allocate(count)
		if !errors.Is(err, ErrNoRoom) {
			return first, err
		}
		if !u.evict() && (len(u.retired) == 0 || u.tables.settle() != nil || !u.reclaim(time.Now())) {
			return first, err
		}
	}
}

// evict takes the table of the file that was unused longest out of the kernel.
func (u *Unwinder) evict() bool {
	var oldest *file
	for _, f := range u.byKey {
		if f.state == Ready && len(f.mappers) == 0 && (oldest == nil || f.unused.Before(oldest.unused)) {
			oldest = f
		}
	}
	if oldest == nil {
		return false
	}
	if u.tables.putFile(oldest.number, &bpf.NativeWalkUnwindFile{}) != nil || u.tables.settle() != nil {
		return false
	}
	u.leaves.release(oldest.image)
	u.numbers = append(u.numbers, oldest.number)
	for key, f := range u.byKey {
		if f == oldest {
			delete(u.byKey, key)
		}
	}
	if u.vdsoFile == oldest {
		u.vdsoFile = nil
	}
	return true
}

// retired is a table that walks are not led to any more.
type retired struct {
	file *file
	at   time.Time
}

// retirement is how long a table's number and leaves are not given to another:
// a child that was forked a moment ago still has the mappings of its parent.
const retirement = 10 * time.Second

// retire takes a table that no mapping leads to any more out of the kernel. Its
// room is free after retirement, or when nothing else is.
func (u *Unwinder) retire(f *file) {
	if u.tables.putFile(f.number, &bpf.NativeWalkUnwindFile{}) == nil {
		u.retired = append(u.retired, retired{f, time.Now()})
	}
}

// reclaim gives away what retired tables left, of those that retired before a time.
func (u *Unwinder) reclaim(before time.Time) (some bool) {
	u.retired = slices.DeleteFunc(u.retired, func(r retired) bool {
		if !r.at.Before(before) {
			return false
		}
		u.leaves.release(r.file.image)
		u.numbers = append(u.numbers, r.file.number)
		some = true
		return true
	})
	return some
}
