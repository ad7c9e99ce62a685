package solve

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// candidates are the unplaced blocks of a component, in classes of lifetimes
// between two powers of two. The longest lifetime that fits is in the highest
// class that has a block within the line, and in a class ends follow starts, so
// that little of it is looked at.
type candidates struct {
	classes []lifeClass // by the number of bits of a lifetime
	ranked  []int32     // blocks, the preferred first: a rank is a position in it
	place   []int32     // by block: its leaf in its class; shared by all components
}

// lifeClass is a tree over the starts of a class's blocks. Its arrays are
// heap-shaped, with the leaves from size on.
type lifeClass struct {
	starts   []int64
	earliest []int64 // end of an unplaced block below the node
	latest   []int64 // likewise
	best     []int32 // lowest rank of an unplaced block below it, or noRank
	size     int
}

const noRank = int32(1<<31 - 1)

func newCandidates(blocks []Block, group, place []int32) *candidates {
	ranked := slices.Clone(group)
	slices.SortFunc(ranked, preference(blocks))
	c := &candidates{ranked: ranked, place: place}
	members := map[int][]int32{} // ranks
	for rank, i := range ranked {
		class := bits.Len64(uint64(blocks[i].Lifetime()))
		members[class] = append(members[class], int32(rank))
	}
	for class, ranks := range members {
		for len(c.classes) <= class {
			c.classes = append(c.classes, lifeClass{})
		}
		c.classes[class].build(c, blocks, ranks)
	}
	return c
}

// preference is best fit's order: lifetime, size, start, position.
func preference(blocks []Block) func(a, b int32) int {
	return func(a, b int32) int {
		x, y := &blocks[a], &blocks[b]
		return cmp.Or(cmp.Compare(y.Lifetime(), x.Lifetime()), cmp.Compare(y.Size, x.Size),
			cmp.Compare(x.Lower, y.Lower), cmp.Compare(a, b))
	}
}

func (l *lifeClass) build(c *candidates, blocks []Block, ranks []int32) {
	slices.SortFunc(ranks, func(a, b int32) int {
		return cmp.Or(cmp.Compare(blocks[c.ranked[a]].Lower, blocks[c.ranked[b]].Lower), cmp.Compare(a, b))
	})
	for l.size = 1; l.size < len(ranks); {
		l.size *= 2
	}
	l.earliest, l.latest, l.best = make([]int64, 2*l.size), make([]int64, 2*l.size), make([]int32, 2*l.size)
	for n := range l.best {
		l.clear(n)
	}
	for at, rank := range ranks {
		block, leaf := c.ranked[rank], l.size+at
		l.starts = append(l.starts, blocks[block].Lower)
		l.earliest[leaf], l.latest[leaf], l.best[leaf] = blocks[block].Upper, blocks[block].Upper, rank
		c.place[block] = int32(leaf)
	}
	for n := l.size - 1; n > 0; n-- {
		l.join(n)
	}
}

func (l *lifeClass) clear(n int) {
	l.earliest[n], l.latest[n], l.best[n] = math.MaxInt64, math.MinInt64, noRank
}

func (l *lifeClass) join(n int) {
	l.earliest[n] = min(l.earliest[2*n], l.earliest[2*n+1])
	l.latest[n] = max(l.latest[2*n], l.latest[2*n+1])
	l.best[n] = min(l.best[2*n], l.best[2*n+1])
}

// best is the preferred unplaced block within [begin, end), or -1.
func (c *candidates) best(begin, end int64) int32 {
	class := min(bits.Len64(uint64(end-begin)), len(c.classes)-1)
	for ; class >= 0; class-- {
		l := &c.classes[class]
		if l.size == 0 || l.earliest[1] > end {
			continue
		}
		from, _ := slices.BinarySearch(l.starts, begin)
		if rank := l.lowest(1, 0, l.size, from, end, noRank); rank != noRank {
			return c.ranked[rank]
		}
	}
	return -1
}

// lowest is the lowest rank below a node, of blocks from a position on that end
// in time, if it is below best.
func (l *lifeClass) lowest(n, first, after, from int, end int64, best int32) int32 {
	if l.best[n] >= best || l.earliest[n] > end || after <= from {
		return best
	}
	if first >= from && l.latest[n] <= end {
		return l.best[n]
	}
	middle := (first + after) / 2
	best = l.lowest(2*n, first, middle, from, end, best)
	return l.lowest(2*n+1, middle, after, from, end, best)
}

// remove takes a placed block out.
func (c *candidates) remove(blocks []Block, block int32) {
	l := &c.classes[bits.Len64(uint64(blocks[block].Lifetime()))]
	n := int(c.place[block])
	l.clear(n)
	for n /= 2; n > 0; n /= 2 {
		l.join(n)
	}
}
