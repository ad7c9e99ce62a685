package unwinding

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
)

// room is the kernel's memory for tables: the numbers of files, leaves and rules. The
// Unwinder's lock is held for all that it does.
type room struct {
	tables     tables
	leaves     leaves
	rules      rules
	images     map[unwind.Digest]*image
	numbers    []uint32 // file numbers given back
	nextNumber uint32
	generation uint16 // of the last table; those beyond the greatest have none
	retired    []retired
	inodes     map[*file][]bpf.NativeWalkUnwindInode // whose file the kernel knows
	refused    Refused
	// unused are the files whose tables can go, of a share's user if that is not nil;
	// evicted is called with each that went.
	unused  func(of *share) []*file
	evicted func([]*file)
}

func newRoom(to tables, limit int) *room {
	return &room{
		tables: to, leaves: leaves{tables: to, limit: limit}, rules: newRules(to),
		images: map[unwind.Digest]*image{}, nextNumber: firstFile, inodes: map[*file][]bpf.NativeWalkUnwindInode{},
	}
}

// whole is what there is of each table.
func (r *room) whole() amount {
	return amount{files: maxFiles - firstFile, leaves: r.leaves.limit * shardLeaves, rules: maxRules}
}

// admit reports whether a share may grow by so much, for which it takes tables out
// that nobody maps any more.
func (r *room) admit(s *share, a amount) error {
	for !s.allows(a, r.whole()) {
		if !r.evict(s) {
			return ErrQuota
		}
	}
	return nil
}

// newNumber is a file number that no mapping has.
func (r *room) newNumber(by *share) (uint32, error) {
	if err := r.admit(by, amount{files: 1}); err != nil {
		return 0, err
	}
	for len(r.numbers) == 0 {
		if r.nextNumber < maxFiles {
			r.nextNumber++
			r.numbers = append(r.numbers, r.nextNumber-1)
		} else if !r.evict(nil) {
			return 0, fmt.Errorf("%w: more than %d files", ErrNoRoom, maxFiles)
		}
	}
	number := r.numbers[len(r.numbers)-1]
	r.numbers = r.numbers[:len(r.numbers)-1]
	by.take(amount{files: 1})
	return number, nil
}

// forget gives a file's number back.
func (r *room) forget(f *file) {
	r.numbers = append(r.numbers, f.number)
	f.of.giveBack(amount{files: 1})
}

// image is a table in the kernel. Files that compile to the same one share it, as
// the copies of a library in several containers do.
type image struct {
	run
	unwind.Image
	rules  []unwind.Rule
	of     *share // of the process for which it was written
	users  int
	digest unwind.Digest // none where it is not shared
}

// publish puts a table into the kernel and lets walks use it. Files with tables of
// one digest share it.
func (r *room) publish(f *file, t *unwind.Table, digest unwind.Digest) error {
	table, shared := r.images[digest]
	if !shared {
		var err error
		if table, err = r.write(t, f.of); err != nil {
			return err
		}
		if table.digest = digest; digest != (unwind.Digest{}) {
			r.images[digest] = table
		}
	}
	table.users++
	f.image = table
	entry := &bpf.NativeWalkUnwindFile{Base: t.Base, Leaf: uint32(table.first), Pages: uint32(t.Pages), PageBits: t.PageBits,
		Sequences: uint32(t.SequenceLeaf())}
	if r.generation < math.MaxUint16 {
		r.generation++
		entry.Generation = r.generation
	}
	// The state last: an entry is not written in one piece.
	for _, entry.State = range []uint8{uint8(bpf.NativeWalkUnwindStateFILE_NO_TABLE),
		uint8(max(f.ready, bpf.NativeWalkUnwindStateFILE_READY))} {
		if err := r.tables.putFile(f.number, entry); err != nil {
			r.release(f)
			return fmt.Errorf("writing the unwind table's place: %w", err)
		}
	}
	f.state, f.rows = Ready, t.Rows
	return nil
}

// write copies a table into the kernel's memory, at the expense of a share.
func (r *room) write(t *unwind.Table, by *share) (*image, error) {
	count := len(t.Leaves) / unwind.LeafBytes
	if err := r.admit(by, amount{leaves: count, rules: r.rules.missing(t.Rules)}); err != nil {
		return nil, err
	}
	first, err := r.allocate(count)
	if err != nil {
		return nil, err
	}
	numbers, err := r.rules.use(t.Rules, by)
	for errors.Is(err, ErrNoRoom) && r.evict(nil) {
		numbers, err = r.rules.use(t.Rules, by)
	}
	if err != nil {
		r.leaves.release(run{first, count})
		return nil, err
	}
	for i := range count {
		t.Renumber(i, r.leaves.leaf(first+i), numbers)
	}
	by.take(amount{leaves: count})
	// The table's own rules are in a file that is unmapped soon.
	return &image{run: run{first, count}, Image: t.Image(), rules: slices.Clone(t.Rules), of: by}, nil
}

// release gives a file's table back; its room with the last user.
func (r *room) release(f *file) {
	table := f.image
	f.image = nil
	if table == nil {
		return
	}
	if table.users--; table.users == 0 {
		delete(r.images, table.digest)
		r.leaves.release(table.run)
		r.rules.release(table.rules)
		table.of.giveBack(amount{leaves: table.count})
	}
}

// allocate finds leaves, if need be those of files that no process maps any more.
func (r *room) allocate(count int) (int, error) {
	r.reclaim(time.Now().Add(-retirement))
	for {
		first, err := r.leaves.allocate(count)
		if !errors.Is(err, ErrNoRoom) {
			return first, err
		}
		if !r.evict(nil) && (len(r.retired) == 0 || r.tables.settle() != nil || !r.reclaim(time.Now())) {
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
func (r *room) evict(of *share) bool {
	unused := r.unused(of)
	unused = unused[:min(len(unused), evicted)]
	for _, f := range unused {
		if !r.untellInodes(f) || r.tables.putFile(f.number, &bpf.NativeWalkUnwindFile{}) != nil {
			return false
		}
	}
	if len(unused) == 0 || r.tables.settle() != nil || r.tables.forgetVMAs() != nil {
		return false
	}
	for _, f := range unused {
		r.release(f)
		r.forget(f)
	}
	r.evicted(unused)
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
func (r *room) retire(f *file) {
	if r.untellInodes(f) && r.tables.putFile(f.number, &bpf.NativeWalkUnwindFile{}) == nil {
		r.retired = append(r.retired, retired{f, time.Now()})
	}
}

// reclaim gives away what retired tables left, of those that retired before a time.
func (r *room) reclaim(before time.Time) (some bool) {
	if !slices.ContainsFunc(r.retired, func(old retired) bool { return old.at.Before(before) }) || r.tables.forgetVMAs() != nil {
		return false
	}
	r.retired = slices.DeleteFunc(r.retired, func(old retired) bool {
		if !old.at.Before(before) {
			return false
		}
		r.release(old.file)
		r.forget(old.file)
		some = true
		return true
	})
	return some
}

// generatedFile puts the table of generated code into the kernel, as a file of its own.
func (r *room) generatedFile(table *unwind.Table, by *share) (*file, error) {
	number, err := r.newNumber(by)
	if err != nil {
		return nil, err
	}
	f := &file{number: number, of: by, ready: bpf.NativeWalkUnwindStateFILE_GENERATED}
	if err := r.publish(f, table, unwind.Digest{}); err != nil {
		r.forget(f)
		return nil, err
	}
	return f, nil
}

// drop takes the table of generated code out of the kernel.
func (r *room) drop(g *generated) {
	if g != nil && g.file != nil {
		r.retire(g.file)
	}
}
