package accel

import (
	"cmp"
	"slices"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
)

// splits are divisions of communicators that not every rank has been seen in
// yet. A rank learns its number in its part only inside NCCL; but the parts
// follow from the colors and keys of all ranks, which are all seen where all
// processes of the job are recorded. Until then, and where they are not, rank
// and size stay unknown, unless the job asks for them.
type splits struct {
	open  map[splitKey]*split
	order []splitKey // of open, the oldest first
}

// splitKey is a split: the communicator's, and the how manieth of it.
type splitKey struct {
	whole int64
	nth   uint64
}

type split struct {
	ranks   int32
	members []splitMember
}

// splitMember is what one rank of the whole asked for.
type splitMember struct {
	rank, color, key int32
	part             *communicator // nil where it gets none
}

// mostSplits is how many unfinished splits are kept: those of which some ranks are
// on other hosts never finish.
const mostSplits = 256

func newSplits() *splits { return &splits{open: map[splitKey]*split{}} }

// join adds a rank; the last one makes all the parts known.
func (s *splits) join(key splitKey, ranks int32, member splitMember) {
	one := s.open[key]
	if one == nil {
		if len(s.order) == mostSplits {
			delete(s.open, s.order[0])
			s.order = s.order[1:]
		}
		one = &split{ranks: ranks}
		s.open[key] = one
		s.order = append(s.order, key)
	}
	if len(one.members) < mostMembers {
		one.members = append(one.members, member)
	}
	if len(one.members) == int(one.ranks) {
		one.finish()
		delete(s.open, key)
		s.order = slices.DeleteFunc(s.order, func(k splitKey) bool { return k == key })
	}
}

// finish numbers the ranks of each part, in the order of their keys and, where
// those are the same, of their ranks in the whole (commGetSplitInfo, NCCL 2.18 on).
func (s *split) finish() {
	slices.SortFunc(s.members, func(a, b splitMember) int {
		return cmp.Or(cmp.Compare(a.color, b.color), cmp.Compare(a.key, b.key), cmp.Compare(a.rank, b.rank))
	})
	seen := map[int32]bool{}
	for _, m := range s.members {
		if m.rank < 0 || m.rank >= s.ranks || seen[m.rank] {
			return // these are not the ranks of one communicator
		}
		seen[m.rank] = true
	}
	for from := 0; from < len(s.members); {
		to := from
		for to < len(s.members) && s.members[to].color == s.members[from].color {
			to++
		}
		for i, m := range s.members[from:to] {
			if m.part != nil {
				m.part.place(int32(i), int32(to-from))
			}
		}
		from = to
	}
}

// place says which rank of how many the caller is, where nothing said so before.
func (c *communicator) place(rank, ranks int32) {
	if c.rank == nil {
		c.rank = &rank
	}
	if c.ranks == nil {
		c.ranks = &ranks
	}
}

// split makes a part: its identity follows from its parent's, from how many
// splits there were before (every rank of the parent takes part in each), and
// from the color.
func (m *communicators) split(c *Call, parent uint64) {
	whole := m.known[parent]
	if whole == nil {
		return
	}
	whole.splits++
	if whole.id == nil {
		return // of an unknown whole
	}
	color := int32(c.args.value[catalog.FieldColor])
	var made *communicator
	if part := c.args.value[catalog.FieldHandle]; part != 0 || color >= 0 {
		id := int64(mix(mix(uint64(*whole.id), whole.splits), c.args.value[catalog.FieldColor]) &^ (1 << 63))
		made = &communicator{id: &id}
		if part != 0 {
			m.known[part] = made
		} else {
			m.promise(c, made)
		}
	}
	if whole.rank != nil && whole.ranks != nil && c.args.Has(catalog.FieldColor) && c.args.Has(catalog.FieldKey) {
		m.splits.join(splitKey{*whole.id, whole.splits}, *whole.ranks, splitMember{
			rank: *whole.rank, color: color, key: int32(c.args.value[catalog.FieldKey]), part: made,
		})
	}
}

// shrink makes a communicator without some ranks: the others close up
// (getParentRanks, NCCL 2.27 on). Its identity follows from its parent's and
// from who is left out, and how often: those take no part in the call, and may
// have another count of calls.
func (m *communicators) shrink(c *Call, parent uint64) {
	whole, handle := m.known[parent], c.args.value[catalog.FieldHandle]
	if whole == nil {
		return
	}
	made := &communicator{}
	if handle != 0 {
		m.known[handle] = made
	} else {
		m.promise(c, made)
	}
	leftOut := c.args.value[catalog.FieldLeftOut]
	if whole.ranks != nil && leftOut < uint64(*whole.ranks) {
		ranks := *whole.ranks - int32(leftOut)
		made.ranks = &ranks
	}
	excluded := c.excluded(leftOut)
	if excluded == nil {
		return
	}
	slices.Sort(excluded)
	hash := uint64(shrinkMark)
	for _, rank := range excluded {
		hash = mix(hash, uint64(rank))
	}
	if whole.shrinks == nil {
		whole.shrinks = map[uint64]uint64{}
	}
	whole.shrinks[hash]++
	if whole.id != nil {
		id := int64(mix(mix(uint64(*whole.id), hash), whole.shrinks[hash]) &^ (1 << 63))
		made.id = &id
	}
	if whole.rank != nil {
		below, _ := slices.BinarySearch(excluded, *whole.rank)
		rank := *whole.rank - int32(below)
		made.rank = &rank
	}
}

// shrinkMark keeps the identities of shrunken communicators apart from those of parts.
const shrinkMark = 0x736872696e6b

// excluded are the ranks that the call leaves out, nil if they were not all captured.
func (c *Call) excluded(n uint64) []int32 {
	var ranks []int32
	for i := range c.f.Values {
		v := &c.f.Values[i]
		if v.Field != catalog.FieldExcluded || uint64(len(ranks)) == n {
			continue
		}
		if i >= len(c.r.Args) || c.r.Faults&(1<<i) != 0 {
			return nil
		}
		ranks = append(ranks, int32(v.Number(c.r.Args[i])))
	}
	if n == 0 || uint64(len(ranks)) < n {
		return nil
	}
	return ranks
}
