package solve

import (
	"cmp"
	"slices"
)

// candidates are the unplaced blocks of a component in a k-d tree over start
// and lifetime. A node knows the best rank below it, so that a query looks only
// where a better block than the best yet may be.
type candidates struct {
	nodes  []candidateNode
	ranked []int32 // blocks, the preferred first: a rank is a position in it
	leaves []int32 // by block: its node; shared by all components
}

type candidateNode struct {
	startMin, startMax  int64
	endMin, endMax      int64
	best                int32 // lowest rank below it, or noRank
	left, right, parent int32 // -1 where there is none
}

const noRank = int32(1<<31 - 1)

func newCandidates(blocks []Block, group, leaves []int32) *candidates {
	ranked := slices.Clone(group)
	slices.SortFunc(ranked, preference(blocks))
	ranks := make([]int32, len(ranked))
	for i := range ranks {
		ranks[i] = int32(i)
	}
	c := &candidates{nodes: make([]candidateNode, 0, 2*len(group)), ranked: ranked, leaves: leaves}
	c.build(blocks, ranks, -1, true)
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

// build makes the node of some ranks, which it reorders, and returns its index.
func (c *candidates) build(blocks []Block, ranks []int32, parent int32, byStart bool) int32 {
	at := int32(len(c.nodes))
	first := blocks[c.ranked[ranks[0]]]
	n := candidateNode{first.Lower, first.Lower, first.Upper, first.Upper, noRank, -1, -1, parent}
	for _, r := range ranks {
		b := &blocks[c.ranked[r]]
		n.startMin, n.startMax = min(n.startMin, b.Lower), max(n.startMax, b.Lower)
		n.endMin, n.endMax = min(n.endMin, b.Upper), max(n.endMax, b.Upper)
		n.best = min(n.best, r)
	}
	c.nodes = append(c.nodes, n)
	if len(ranks) == 1 {
		c.leaves[c.ranked[ranks[0]]] = at
		return at
	}
	if byStart {
		slices.SortFunc(ranks, func(a, b int32) int {
			return cmp.Or(cmp.Compare(blocks[c.ranked[a]].Lower, blocks[c.ranked[b]].Lower), cmp.Compare(a, b))
		})
	} else {
		slices.Sort(ranks) // ranks follow lifetimes
	}
	half := len(ranks) / 2
	left := c.build(blocks, ranks[:half], at, !byStart)
	right := c.build(blocks, ranks[half:], at, !byStart)
	c.nodes[at].left, c.nodes[at].right = left, right
	return at
}

// best is the preferred unplaced block within [begin, end), or -1.
func (c *candidates) best(begin, end int64) int32 {
	best := noRank
	var stack [64]int32 // halving 2³¹ blocks is 31 levels, each leaves one
	stack[0] = 0
	for depth := 1; depth > 0; {
		depth--
		n := &c.nodes[stack[depth]]
		if n.best >= best || n.startMax < begin || n.endMin > end {
			continue
		}
		if n.startMin >= begin && n.endMax <= end {
			best = n.best
			continue
		}
		if n.left < 0 {
			continue
		}
		near, far := n.left, n.right
		if c.nodes[far].best < c.nodes[near].best {
			near, far = far, near
		}
		stack[depth], stack[depth+1] = far, near
		depth += 2
	}
	if best == noRank {
		return -1
	}
	return c.ranked[best]
}

// remove takes a placed block out. Boxes shrink with it: what is placed keeps no
// query away from the rest.
func (c *candidates) remove(block int32) {
	at := c.leaves[block]
	c.nodes[at].best = noRank
	for at = c.nodes[at].parent; at >= 0; at = c.nodes[at].parent {
		n := &c.nodes[at]
		l, r := &c.nodes[n.left], &c.nodes[n.right]
		n.best = min(l.best, r.best)
		switch {
		case l.best == noRank && r.best == noRank:
		case l.best == noRank:
			n.startMin, n.startMax, n.endMin, n.endMax = r.startMin, r.startMax, r.endMin, r.endMax
		case r.best == noRank:
			n.startMin, n.startMax, n.endMin, n.endMax = l.startMin, l.startMax, l.endMin, l.endMax
		default:
			n.startMin, n.startMax = min(l.startMin, r.startMin), max(l.startMax, r.startMax)
			n.endMin, n.endMax = min(l.endMin, r.endMin), max(l.endMax, r.endMax)
		}
	}
}
