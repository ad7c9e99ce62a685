package solve

import (
	"math"
	"slices"
)

// firstFitByBirth serves requests in the order of their births, each at the lowest
// gap that is large enough, as an allocator does that knows nothing of what comes: first
// fit in one more order. It needs O(n log n) whatever the lifetimes are, so it is
// run to its end even where no time is left: the plan that is always there. Blocks
// lie above all fixed ones.
func firstFitByBirth(blocks []Block, fixed Fixed) []int64 {
	offsets := make([]int64, len(blocks))
	var top int64
	for i, at := range fixed {
		offsets[i] = at
		top = max(top, at+blocks[i].Size)
	}
	none := func(i int32) bool {
		_, is := fixed[int(i)]
		return is || blocks[i].Size == 0
	}
	births, deaths := slices.DeleteFunc(byBirth(blocks), none), slices.DeleteFunc(byDeath(blocks), none)
	free := newGaps(top)
	for _, i := range births {
		for blocks[deaths[0]].Upper <= blocks[i].Lower {
			free.put(offsets[deaths[0]], blocks[deaths[0]].Size)
			deaths = deaths[1:]
		}
		offsets[i] = free.take(blocks[i].Size)
	}
	return offsets
}

// gaps are the free addresses: a treap by address in which a node knows the largest
// gap below it. The last one has no end.
type gaps struct {
	root *gap
	seed uint64
}

type gap struct {
	at, size, largest int64
	priority          uint64
	left, right       *gap
}

// endless is the size of the gap behind all blocks.
const endless = math.MaxInt64 / 2

// newGaps are those of a memory that is free from an address on.
func newGaps(from int64) *gaps { return &gaps{root: &gap{at: from, size: endless, largest: endless}} }

// update is to be called when the gap or what is below it has changed.
func (g *gap) update() {
	g.largest = g.size
	if g.left != nil {
		g.largest = max(g.largest, g.left.largest)
	}
	if g.right != nil {
		g.largest = max(g.largest, g.right.largest)
	}
}

// take cuts bytes from the lowest gap that has them.
func (f *gaps) take(size int64) (at int64) {
	f.root = f.root.take(size, &at)
	return at
}

// take returns what is left of the tree.
func (g *gap) take(size int64, at *int64) *gap {
	switch {
	case g.left != nil && g.left.largest >= size:
		g.left = g.left.take(size, at)
	case g.size >= size:
		*at = g.at
		if g.size == size {
			return joinGaps(g.left, g.right)
		}
		g.at += size
		if g.size != endless {
			g.size -= size
		}
	default:
		g.right = g.right.take(size, at)
	}
	g.update()
	return g
}

// put gives addresses back, and makes one gap of them and what is beside them.
func (f *gaps) put(at, size int64) {
	left, right := splitGaps(f.root, at)
	for before := left; before != nil; before = before.right {
		if before.at+before.size == at {
			at, size = before.at, before.size+size
			left, _ = splitGaps(left, at)
			break
		}
	}
	// The gap without an end is always on the right.
	next := right
	for next.left != nil {
		next = next.left
	}
	if next.at == at+size {
		if next.size == endless {
			size = endless
		} else {
			size += next.size
		}
		_, right = splitGaps(right, next.at+1)
	}
	f.seed = f.seed*6364136223846793005 + 1442695040888963407
	middle := &gap{at: at, size: size, largest: size, priority: f.seed >> 11}
	f.root = joinGaps(joinGaps(left, middle), right)
}

// splitGaps cuts a tree into addresses below and not below.
func splitGaps(g *gap, at int64) (left, right *gap) {
	if g == nil {
		return nil, nil
	}
	if g.at < at {
		g.right, right = splitGaps(g.right, at)
		g.update()
		return g, right
	}
	left, g.left = splitGaps(g.left, at)
	g.update()
	return left, g
}

func joinGaps(left, right *gap) *gap {
	switch {
	case left == nil:
		return right
	case right == nil:
		return left
	case left.priority > right.priority:
		left.right = joinGaps(left.right, right)
		left.update()
		return left
	}
	right.left = joinGaps(left, right.left)
	right.update()
	return right
}
