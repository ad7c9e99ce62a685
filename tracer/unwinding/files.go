package unwinding

import (
	"errors"
	"fmt"
	"maps"
	"math"
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
	ready   bpf.NativeWalkUnwindState // what the kernel is told when the table is there

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

// find returns the file of a library that a process maps, new or known.
func (u *Unwinder) find(l *process.Library, by *share) *file {
	id := inode{l.Device, l.Inode}
	if f, ok := u.byInode[id]; ok {
		return f
	}
	e, err := l.OpenELF()
	if err != nil {
		f := &file{path: l.Path, state: Absent, reason: err, compat: errors.Is(err, elf.Err32Bit), mappers: map[int]bool{}}
		u.byInode[id] = f
		return f
	}
	f := u.findELF(l.Path, e, by)
	u.byInode[id] = f
	return f
}

// findELF returns the file of an ELF's origin, and queues a new one.
func (u *Unwinder) findELF(path string, e *elf.File, by *share) *file {
	key := e.Origin()
	if key == "" {
		key = path // the vDSO
	}
	if f, ok := u.byOrigin[key]; ok {
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
		f.number, err = u.newNumber(by)
	}
	if err != nil {
		u.refused.count(err)
		f.state, f.reason = Absent, err
		e.Close()
		return f
	}
	f.state, f.elf, f.size = Waiting, e, len(contents)
	u.byOrigin[key] = f
	u.enqueue(f)
	return f
}

// newNumber is a file number that no mapping has.
func (u *Unwinder) newNumber(by *share) (uint32, error) {
	if err := u.admit(by, amount{files: 1}); err != nil {
		return 0, err
	}
	for len(u.numbers) == 0 {
		if u.nextNumber < maxFiles {
			u.nextNumber++
			u.numbers = append(u.numbers, u.nextNumber-1)
		} else if !u.evict(nil) {
			return 0, fmt.Errorf("%w: more than %d files", ErrNoRoom, maxFiles)
		}
	}
	number := u.numbers[len(u.numbers)-1]
	u.numbers = u.numbers[:len(u.numbers)-1]
	by.take(amount{files: 1})
	return number, nil
}

// forget gives a file's number back.
func (u *Unwinder) forget(f *file) {
	u.numbers = append(u.numbers, f.number)
	f.of.giveBack(amount{files: 1})
}

// image is a table in the kernel. Files that compile to the same one share it, as
// the copies of a library in several containers do.
type image struct {
	run
	rules  []unwind.Rule
	of     *share // of the process for which it was written
	users  int
	digest unwind.Digest // none where it is not shared
}

// publish puts a table into the kernel and lets walks use it. Files with tables of
// one digest share it.
func (u *Unwinder) publish(f *file, t *unwind.Table, digest unwind.Digest) error {
	table, shared := u.images[digest]
	if !shared {
		var err error
		if table, err = u.write(t, f.of); err != nil {
			return err
		}
		if table.digest = digest; digest != (unwind.Digest{}) {
			u.images[digest] = table
		}
	}
	table.users++
	f.image = table
	entry := &bpf.NativeWalkUnwindFile{Base: t.Base, Leaf: uint32(table.first), Pages: uint32(t.Pages), PageBits: t.PageBits, Sequences: uint32(t.SequenceLeaf())}
	if u.generation < math.MaxUint16 {
		u.generation++
		entry.Generation = u.generation
	}
	// The state last: an entry is not written in one piece.
	for _, entry.State = range []uint8{uint8(bpf.NativeWalkUnwindStateFILE_NO_TABLE), uint8(max(f.ready, bpf.NativeWalkUnwindStateFILE_READY))} {
		if err := u.tables.putFile(f.number, entry); err != nil {
			u.release(f)
			return fmt.Errorf("writing the unwind table's place: %w", err)
		}
	}
	f.state, f.rows = Ready, t.Rows
	return nil
}

// write copies a table into the kernel's memory, at the expense of a share.
func (u *Unwinder) write(t *unwind.Table, by *share) (*image, error) {
	count := len(t.Leaves) / unwind.LeafBytes
	if err := u.admit(by, amount{leaves: count, rules: u.rules.missing(t.Rules)}); err != nil {
		return nil, err
	}
	first, err := u.room(count)
	if err != nil {
		return nil, err
	}
	numbers, err := u.rules.use(t.Rules, by)
	for errors.Is(err, ErrNoRoom) && u.evict(nil) {
		numbers, err = u.rules.use(t.Rules, by)
	}
	if err != nil {
		u.leaves.release(run{first, count})
		return nil, err
	}
	for i := range count {
		t.Renumber(i, u.leaves.leaf(first+i), numbers)
	}
	by.take(amount{leaves: count})
	// The table's own rules are in a file that is unmapped soon.
	return &image{run: run{first, count}, rules: slices.Clone(t.Rules), of: by}, nil
}

// release gives a file's table back; its room with the last user.
func (u *Unwinder) release(f *file) {
	table := f.image
	f.image = nil
	if table == nil {
		return
	}
	if table.users--; table.users == 0 {
		delete(u.images, table.digest)
		u.leaves.release(table.run)
		u.rules.release(table.rules)
		table.of.giveBack(amount{leaves: table.count})
	}
}

// leaves is how many leaves of the kernel's a file's table takes.
func (f *file) leaves() int {
	if f.image == nil {
		return 0
	}
	return f.image.count
}

// room finds leaves, if need be those of files that no process maps any more.
func (u *Unwinder) room(count int) (int, error) {
	u.reclaim(time.Now().Add(-retirement))
	for {
		first, err := u.leaves.allocate(count)
		if !errors.Is(err, ErrNoRoom) {
			return first, err
		}
		if !u.evict(nil) && (len(u.retired) == 0 || u.tables.settle() != nil || !u.reclaim(time.Now())) {
			return first, err
		}
	}
}

// evicted is how many tables go at once: for each time that the kernel's walks are
// waited for.
const evicted = 32

// evict takes tables out of the kernel that no process maps, those first that were
// unused longest; of one share's user only, unless that is nil. It reports whether
// there were any.
func (u *Unwinder) evict(of *share) bool {
	var unused []*file
	for _, f := range u.byOrigin {
		if len(f.mappers) == 0 && !u.reading[f] && (f.state == Ready || f.state == Absent) && (of == nil || f.of != nil && (f.of == of || f.of.user == of.user && of.user != nil)) {
			unused = append(unused, f)
		}
	}
	slices.SortFunc(unused, func(a, b *file) int { return a.unused.Compare(b.unused) })
	unused = unused[:min(len(unused), evicted)]
	for _, f := range unused {
		if u.tables.putFile(f.number, &bpf.NativeWalkUnwindFile{}) != nil {
			return false
		}
	}
	if len(unused) == 0 || u.tables.settle() != nil {
		return false
	}
	for _, f := range unused {
		u.release(f)
		u.forget(f)
		if u.vdsoFile == f {
			u.vdsoFile = nil
		}
	}
	maps.DeleteFunc(u.byOrigin, func(_ string, f *file) bool { return slices.Contains(unused, f) })
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
		u.release(r.file)
		u.forget(r.file)
		some = true
		return true
	})
	return some
}
