package solve

import (
	"cmp"
	"math"
	"slices"
)

// lifeTree holds some of the blocks and finds those that live during another
// one: a tree over start in which a node knows the latest end below it.
type lifeTree struct {
	blocks []Block
	sorted []int32 // blocks by start
	where  []int32 // by block: position in sorted
	latest []int64 // heap-shaped, leaves from size on
	size   int
}

const never = math.MinInt64

// newLifeTree holds none of the blocks yet.
func newLifeTree(blocks []Block) *lifeTree {
	t := &lifeTree{blocks: blocks, sorted: make([]int32, len(blocks)), where: make([]int32, len(blocks)), size: 1}
	for i := range t.sorted {
		t.sorted[i] = int32(i)
	}
	slices.SortFunc(t.sorted, func(a, b int32) int {
		return cmp.Or(cmp.Compare(blocks[a].Lower, blocks[b].Lower), cmp.Compare(a, b))
	})
	for at, i := range t.sorted {
		t.where[i] = int32(at)
	}
	for t.size < len(blocks) {
		t.size *= 2
	}
	t.latest = make([]int64, 2*t.size)
	for i := range t.latest {
		t.latest[i] = never
	}
	return t
}

func (t *lifeTree) insert(i int32) {
	for n := t.size + int(t.where[i]); n > 0 && t.latest[n] < t.blocks[i].Upper; n /= 2 {
		t.latest[n] = t.blocks[i].Upper
	}
}

func (t *lifeTree) remove(i int32) {
	n := t.size + int(t.where[i])
	t.latest[n] = never
	for n /= 2; n > 0; n /= 2 {
		t.latest[n] = max(t.latest[2*n], t.latest[2*n+1])
	}
}

// during calls visit with each block in the tree that lives during b.
func (t *lifeTree) during(b Block, visit func(i int32)) {
	before, _ := slices.BinarySearchFunc(t.sorted, b.Upper, func(i int32, upper int64) int {
		return cmp.Compare(t.blocks[i].Lower, upper)
	})
	t.walk(1, 0, t.size, before, b.Lower, visit)
}

// walk looks among the positions [from, to) below node n.
func (t *lifeTree) walk(n, from, to, before int, after int64, visit func(i int32)) {
	if from >= before || t.latest[n] <= after {
		return
	}
	if n >= t.size {
		visit(t.sorted[n-t.size])
		return
	}
	middle := (from + to) / 2
	t.walk(2*n, from, middle, before, after, visit)
	t.walk(2*n+1, middle, to, before, after, visit)
}
