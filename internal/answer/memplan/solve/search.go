package solve

import (
	"cmp"
	"context"
	"slices"
)

// search looks for a plan of one component within a capacity, by exhausting the
// canonical ones: every block at offset 0 or on top of another, blocks placed in
// the order of their offsets, numbers breaking ties. Each plan can be pushed down
// into a canonical one, so if there is none, there is no plan at all. The ideas
// are those that MiniMalloc (ASPLOS 2023) and TelaMalloc (ASPLOS 2023) published:
//
//   - Sections: what is not placed yet must fit above the lowest place that any of
//     it can still take, in every section, or the branch is dead.
//   - Dominance: a block is not placed so high that another would have fitted
//     below it.
//   - A block that was passed over must come to lie on something that is placed
//     later; if there is nothing, the branch is dead.
//   - Decomposition: where what is left falls into groups that share no section,
//     each is searched alone; and when a group fails in which the last placed block
//     has no part, its siblings need not be tried.
type search struct {
	*problem
	capacity int64
	budget   int64 // nodes that may still be tried
	ctx      context.Context
	nodes    int64
	look     int64 // mask of the nodes at which the clock is looked at

	offset []int64 // of placed blocks
	lowest []int64 // of unplaced blocks: the lowest offset above what is placed
	placed []bool
	bound  []int64 // scratch: the lowest offset that the order still allows
	left   []int64 // by section: bytes that are not placed
	floor  []int64 // scratch by section
	trail  []change
	group  [2]int32 // sections of the group that failed last
	deadly []int32  // the sections that branches died in last: they are looked at first
	lists  []int32  // the lists of all nodes from the root down, one behind the other
}

// change is what undo needs: what lowest was, or that the block was placed.
type change struct {
	block  int32
	lowest int64
}

const placement = -1

// outcome of a search.
type outcome int

const (
	found     outcome = iota
	exhausted         // there is no plan within the capacity
	gaveUp            // the budget, or the time, was used up
)

// last is the place after which the order allows blocks.
type last struct {
	offset int64
	block  int32
}

func (l last) allows(offset int64, block int32) bool {
	return offset > l.offset || offset == l.offset && block > l.block
}

func newSearch(p *problem) *search {
	n := len(p.size)
	look := int64(0x3ff)
	if n > 1000 { // a node takes a while
		look = 0xf
	}
	return &search{problem: p, look: look, offset: make([]int64, n), lowest: make([]int64, n), placed: make([]bool, n),
		bound: make([]int64, n), left: make([]int64, len(p.live)), floor: make([]int64, len(p.live))}
}

// plan is what was found: offsets of the blocks with some positions.
func (s *search) plan() (index []int32, offsets []int64) { return s.index, s.offset }

// run searches within a capacity, for at most so many nodes.
func (s *search) run(ctx context.Context, capacity, budget int64) outcome {
	s.ctx, s.capacity, s.budget = ctx, capacity, budget
	s.trail, s.lists, s.deadly = s.trail[:0], s.lists[:0], s.deadly[:0]
	copy(s.left, s.live)
	for i := range s.size {
		s.placed[i] = s.fixed[i].at >= 0
		if s.placed[i] {
			s.offset[i] = s.fixed[i].at
			if s.fixed[i].end > capacity {
				return exhausted
			}
			continue
		}
		s.lowest[i] = s.above(int32(i), 0)
	}
	return s.all(s.byStart, last{0, -1})
}

// all places the unplaced blocks of a list that is ordered by start: group by
// group, where a group shares no section with another.
func (s *search) all(list []int32, after last) outcome {
	for begin := 0; begin < len(list); {
		if s.placed[list[begin]] {
			begin++
			continue
		}
		first := s.from[list[begin]]
		end, to := begin+1, s.to[list[begin]]
		for ; end < len(list); end++ {
			i := list[end]
			if s.placed[i] {
				continue
			}
			if s.from[i] >= to {
				break
			}
			to = max(to, s.to[i])
		}
		mark := len(s.lists)
		for _, i := range list[begin:end] {
			if !s.placed[i] {
				s.lists = append(s.lists, i)
			}
		}
		o := s.one(s.lists[mark:len(s.lists):len(s.lists)], first, to, after)
		s.lists = s.lists[:mark]
		if o != found {
			if o == exhausted {
				s.group = [2]int32{first, to}
			}
			return o
		}
		begin = end
	}
	return found
}

// one places the blocks of one group.
func (s *search) one(group []int32, first, to int32, after last) outcome {
	begun := len(s.lists)
	defer func() { s.lists = s.lists[:begun] }()
	choices, feasible := s.choices(group, first, to, after)
	if !feasible {
		return exhausted
	}
	for _, i := range choices {
		s.nodes++
		if s.budget--; s.budget < 0 || s.nodes&s.look == 0 && s.ctx.Err() != nil {
			return gaveUp
		}
		mark, at := len(s.trail), s.lowest[i]
		s.place(i)
		if s.soonDead(first, to, last{at, i}) {
			s.undo(mark)
			continue
		}
		o := s.all(group, last{at, i})
		if o != exhausted {
			return o
		}
		failed := s.group
		s.undo(mark)
		if failed[1] <= s.from[i] || s.to[i] <= failed[0] {
			return exhausted // it fails whatever becomes of block i
		}
	}
	return exhausted
}

func (s *search) place(i int32) {
	s.placed[i], s.offset[i] = true, s.lowest[i]
	s.trail = append(s.trail, change{i, placement})
	top := s.lowest[i] + s.size[i]
	for k := s.from[i]; k < s.to[i]; k++ {
		s.left[k] -= s.size[i]
	}
	for _, j := range s.over[i] {
		if !s.placed[j] && s.lowest[j] < top {
			s.trail = append(s.trail, change{j, s.lowest[j]})
			s.lowest[j] = s.above(j, top)
		}
	}
}

// undo takes back everything after a mark: the block placed there, and those of
// groups that were complete when another one failed.
func (s *search) undo(mark int) {
	for len(s.trail) > mark {
		c := s.trail[len(s.trail)-1]
		s.trail = s.trail[:len(s.trail)-1]
		if c.lowest != placement {
			s.lowest[c.block] = c.lowest
			continue
		}
		s.placed[c.block] = false
		for k := s.from[c.block]; k < s.to[c.block]; k++ {
			s.left[k] += s.size[c.block]
		}
	}
}

// choices are the blocks that may be placed next, in the order to try them; not
// feasible when what is left cannot fit.
func (s *search) choices(group []int32, first, to int32, after last) (choices []int32, feasible bool) {
	ceiling := int64(1<<63 - 1) // some block would fit below it
	for _, i := range group {
		low := s.lowest[i]
		ceiling = min(ceiling, low+s.size[i])
		if !after.allows(low, i) {
			if low = s.pushed(i, after); low < 0 {
				return nil, false
			}
		}
		if low+s.size[i] > s.capacity {
			return nil, false
		}
		s.bound[i] = low
	}
	if ceiling <= after.offset {
		return nil, false
	}
	begun := len(s.lists)
	floor := s.floor[first:to]
	for k := range floor {
		floor[k] = s.capacity
	}
	for _, i := range group {
		low := s.bound[i]
		within := s.floor[s.from[i]:s.to[i]]
		for k, floor := range within {
			if floor > low {
				within[k] = low
			}
		}
		if low == s.lowest[i] && low < ceiling && after.allows(low, i) {
			s.lists = append(s.lists, i)
		}
	}
	for k := first; k < to; k++ {
		if s.left[k] > s.capacity-s.floor[k] {
			s.dies(k, len(s.deadly))
			return nil, false
		}
	}
	choices = s.lists[begun:len(s.lists):len(s.lists)]
	slices.SortFunc(choices, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.lowest[a], s.lowest[b]), cmp.Compare(a, b))
	})
	return choices, true
}

// mostDeadly is how many sections are looked at before all others: more than one
// branch in two dies in one of them, and a look at one is a hundredth of the rest.
const mostDeadly = 4

// dies notes that a branch died in a section, which is at a place of the list or
// behind its end.
func (s *search) dies(k int32, at int) {
	switch {
	case at < len(s.deadly):
	case len(s.deadly) < mostDeadly:
		s.deadly = append(s.deadly, k)
	default:
		at = mostDeadly - 1
	}
	copy(s.deadly[1:], s.deadly[:at])
	s.deadly[0] = k
}

// soonDead looks at the sections of a group in which branches died last.
func (s *search) soonDead(first, to int32, after last) bool {
	for at, k := range s.deadly {
		if first <= k && k < to && s.overfull(k, after) {
			s.dies(k, at)
			return true
		}
	}
	return false
}

// overfull reports whether what is left of a section does not fit above the lowest
// place that any of it can still take.
func (s *search) overfull(k int32, after last) bool {
	floor := s.capacity - s.left[k] + 1 // the lowest that is too high
	for _, i := range s.cover[k] {
		if s.placed[i] {
			continue
		}
		low := s.lowest[i]
		if low < floor && !after.allows(low, i) {
			if low = s.pushed(i, after); low < 0 {
				return true
			}
		}
		if low < floor {
			return false
		}
	}
	return s.left[k] > 0
}

// pushed is the lowest offset that a block can have which was passed over: on top
// of a block that is placed later. It is -1 if there is none.
func (s *search) pushed(i int32, after last) int64 {
	low := int64(-1)
	for _, j := range s.over[i] {
		if s.placed[j] {
			continue
		}
		top := max(s.lowest[j], after.offset) + s.size[j]
		if low < 0 || top < low {
			low = top
		}
	}
	if low < 0 {
		return -1
	}
	return s.above(i, low)
}
