package solve

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"slices"
)

// ErrOverlap is returned by Check when two blocks that live at the same time
// share bytes.
var ErrOverlap = errors.New("two blocks that live at the same time overlap")

// Check proves a plan, independently of what made it: offsets are not negative,
// fixed ones are kept, and no two blocks share a byte at any instant. It takes
// O(n log n): blocks are swept by offset as rectangles of address × time would
// be, with the addresses in use at an instant kept in order.
func Check(blocks []Block, fixed Fixed, offsets []int64) error {
	if len(offsets) != len(blocks) {
		return fmt.Errorf("checking a plan: %d offsets for %d blocks", len(offsets), len(blocks))
	}
	order := make([]int, 0, len(blocks))
	for i, b := range blocks {
		if offsets[i] < 0 {
			return fmt.Errorf("checking a plan: block %d at %d: %w", i, offsets[i], ErrNegative)
		}
		if at, is := fixed[i]; is && at != offsets[i] {
			return fmt.Errorf("checking a plan: block %d is at %d, fixed at %d", i, offsets[i], at)
		}
		if b.Lower < b.Upper && b.Size > 0 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(blocks[a].Lower, blocks[b].Lower) })
	var (
		ends  endings
		inUse treap
	)
	for _, i := range order {
		b := blocks[i]
		for len(ends) > 0 && ends[0].at <= b.Lower {
			inUse.remove(heap.Pop(&ends).(ending).offset)
		}
		below, above := inUse.around(offsets[i])
		if below != nil && below.offset+blocks[below.block].Size > offsets[i] {
			return fmt.Errorf("checking a plan: blocks %d and %d: %w", below.block, i, ErrOverlap)
		}
		if above != nil && offsets[i]+b.Size > above.offset {
			return fmt.Errorf("checking a plan: blocks %d and %d: %w", i, above.block, ErrOverlap)
		}
		inUse.insert(offsets[i], i)
		heap.Push(&ends, ending{b.Upper, offsets[i]})
	}
	return nil
}

// ending is when an address in use becomes free.
type ending struct{ at, offset int64 }

type endings []ending

func (e endings) Len() int           { return len(e) }
func (e endings) Less(i, j int) bool { return e[i].at < e[j].at }
func (e endings) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *endings) Push(x any)        { *e = append(*e, x.(ending)) }
func (e *endings) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

// treap is an ordered map from offset to block; blocks in it do not overlap, so
// offsets are distinct.
type treap struct {
	root *treapNode
	seed uint64
}

type treapNode struct {
	offset      int64
	block       int
	priority    uint64
	left, right *treapNode
}

// around finds the nearest entries at or below, and above, an offset.
func (t *treap) around(offset int64) (below, above *treapNode) {
	for n := t.root; n != nil; {
		if n.offset <= offset {
			below, n = n, n.right
		} else {
			above, n = n, n.left
		}
	}
	return below, above
}

func (t *treap) insert(offset int64, block int) {
	// xorshift: any sequence does, and this one is the same every time.
	t.seed = t.seed*6364136223846793005 + 1442695040888963407
	left, right := split(t.root, offset)
	node := &treapNode{offset: offset, block: block, priority: t.seed >> 11}
	t.root = join(join(left, node), right)
}

func (t *treap) remove(offset int64) {
	left, rest := split(t.root, offset)
	_, right := split(rest, offset+1)
	t.root = join(left, right)
}

// split cuts a tree into offsets below and not below.
func split(n *treapNode, offset int64) (left, right *treapNode) {
	if n == nil {
		return nil, nil
	}
	if n.offset < offset {
		n.right, right = split(n.right, offset)
		return n, right
	}
	left, n.left = split(n.left, offset)
	return left, n
}

func join(left, right *treapNode) *treapNode {
	switch {
	case left == nil:
		return right
	case right == nil:
		return left
	case left.priority > right.priority:
		left.right = join(left.right, right)
		return left
	}
	right.left = join(left, right.left)
	return right
}
