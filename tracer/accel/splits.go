package accel

import (
	"cmp"
	"slices"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// splits are divisions of communicators that not every rank has been seen in
// yet. A rank learns its number in its part only inside NCCL; but the parts
// follow from the colors and keys of all ranks, which are all seen where all
// processes of the job are recorded. Until then, and where they are not, rank
// and size stay unknown, unless the job asks for them.
//
// They are of all processes together, and each has its share of them.
type splits struct {
	open    map[splitKey]*split
	of      map[uint32][]splitKey // by the process that was the first in them, the oldest first
	members map[uint32]int        // of the open ones, by process
	givenUp uint64                // that had to go before all of their ranks had come, or could not have them all
}

// splitKey is a split: the communicator's, and the how manieth of it.
type splitKey struct {
	whole int64
	nth   uint64
}

type split struct {
	first   uint32 // the process that pays for it
	ranks   int32
	members []splitMember
}

// splitMember is what one rank of the whole asked for.
type splitMember struct {
	pid              uint32
	rank, color, key int32
	part             *communicator // nil where it gets none, or its process has ended
}

func newSplits() *splits {
	return &splits{open: map[splitKey]*split{}, of: map[uint32][]splitKey{}, members: map[uint32]int{}}
}

// join adds a rank; the last one makes all the parts known.
func (s *splits) join(key splitKey, ranks int32, member splitMember) {
	if s.members[member.pid] >= MaxSplitMembers {
		s.givenUp++
		return
	}
	one := s.open[key]
	if one == nil {
		one = s.begin(key, ranks, member.pid)
	}
	one.members = append(one.members, member)
	s.members[member.pid]++
	if len(one.members) == int(one.ranks) {
		one.finish()
		s.drop(key)
	}
}

// begin makes room for another one: what goes is the oldest of a process that has its
// share, or, where all of the room is taken, of the one that has the most of it.
func (s *splits) begin(key splitKey, ranks int32, pid uint32) *split {
	switch {
	case len(s.of[pid]) >= MaxSplitsOfProcess:
		s.giveUp(s.of[pid][0])
	case len(s.open) >= MaxSplits:
		loser := pid
		for other, keys := range s.of {
			if len(keys) > len(s.of[loser]) {
				loser = other
			}
		}
		s.giveUp(s.of[loser][0])
	}
	one := &split{first: pid, ranks: ranks}
	s.open[key] = one
	s.of[pid] = append(s.of[pid], key)
	return one
}

func (s *splits) giveUp(key splitKey) {
	s.drop(key)
	s.givenUp++
}

// drop forgets one.
func (s *splits) drop(key splitKey) {
	one := s.open[key]
	delete(s.open, key)
	for _, m := range one.members {
		if s.members[m.pid]--; s.members[m.pid] <= 0 {
			delete(s.members, m.pid)
		}
	}
	s.release(key, one.first)
}

// release takes one off what a process pays for.
func (s *splits) release(key splitKey, pid uint32) {
	s.of[pid] = slices.DeleteFunc(s.of[pid], func(k splitKey) bool { return k == key })
	if len(s.of[pid]) == 0 {
		delete(s.of, pid)
	}
}

// ended forgets a process: its ranks still count for the numbers of the others, who
// pay for what it began. A split that no other process is in goes.
func (s *splits) ended(pid uint32) {
	if s.members[pid] == 0 {
		return
	}
	for key, one := range s.open {
		var heir uint32
		for i := range one.members {
			m := &one.members[i]
			if m.pid == pid {
				m.pid, m.part = 0, nil
			}
			heir = cmp.Or(heir, m.pid)
		}
		switch {
		case heir == 0:
			s.drop(key)
		case one.first == pid:
			s.release(key, pid)
			one.first, s.of[heir] = heir, append(s.of[heir], key)
		}
	}
	delete(s.members, pid)
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
				m.part.setRank(int32(i), int32(to-from))
			}
		}
		from = to
	}
}

// setRank says which rank of how many the caller is, where nothing said so before.
func (c *communicator) setRank(rank, ranks int32) {
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
	color := int32(c.args.value[spec.FieldColor])
	var made *communicator
	if part := c.args.value[spec.FieldHandle]; part != 0 || color >= 0 {
		id := int64(mix(mix(uint64(*whole.id), whole.splits), c.args.value[spec.FieldColor]) &^ (1 << 63))
		made = &communicator{id: &id}
		if part != 0 {
			m.known[part] = made
		} else {
			m.expect(c, made)
		}
	}
	if whole.rank != nil && whole.ranks != nil && c.args.Has(spec.FieldColor) && c.args.Has(spec.FieldKey) {
		m.splits.join(splitKey{*whole.id, whole.splits}, *whole.ranks, splitMember{
			pid: c.pid, rank: *whole.rank, color: color, key: int32(c.args.value[spec.FieldKey]), part: made,
		})
	}
}

// shrink makes a communicator without some ranks: the others close up
// (getParentRanks, NCCL 2.27 on). Its identity follows from its parent's and
// from who is left out, and how often: those take no part in the call, and may
// have another count of calls.
func (m *communicators) shrink(c *Call, parent uint64) {
	whole, handle := m.known[parent], c.args.value[spec.FieldHandle]
	if whole == nil {
		return
	}
	made := &communicator{}
	if handle != 0 {
		m.known[handle] = made
	} else {
		m.expect(c, made)
	}
	leftOut := c.args.value[spec.FieldLeftOut]
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
	if whole.shrinks[hash]++; whole.shrinks[hash] == 1 {
		m.shrunk++
	}
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
		if v.Field != spec.FieldExcluded || uint64(len(ranks)) == n {
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
