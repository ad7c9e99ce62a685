package profile

import (
	"cmp"
	"slices"

	"github.com/ebpfprof/ebpfprof/symbolize"
)

// Node is a function as it is called on one path from the threads' start.
type Node struct {
	Label string
	// Kind is "" for what is no function: a process, a thread, the cut end of
	// a stack, the root.
	Kind     symbolize.Kind
	SelfNS   int64
	TotalNS  int64
	Children []*Node // those with the most time first

	function *function
	index    map[*function]*Node
	hot      bool
}

// CutLabel begins the label of the node that stacks hang below which do not
// reach down to their thread's start.
const CutLabel = "[stack cut: "

// Tree merges the stacks from the threads' start on. A function that calls
// itself is one node, however deep.
func (p Profile) Tree() *Node {
	root := &Node{}
	titles := map[string]*function{"": nil}
	for i := range p {
		s := &p[i]
		at := root
		at.TotalNS += s.WeightNS
		for _, title := range s.Titles() {
			if titles[title] == nil && title != "" {
				titles[title] = &function{label: title}
			}
			at = at.child(titles[title], s.WeightNS)
		}
		for j := len(s.Frames) - 1; j >= 0; j-- {
			at = at.child(s.Frames[j].function, s.WeightNS)
		}
		at.SelfNS += s.WeightNS
	}
	root.finish()
	return root
}

// child is the node of a function below n; n itself for its own function, and
// for none.
func (n *Node) child(of *function, weight int64) *Node {
	if of == nil || of == n.function {
		return n
	}
	c := n.find(of)
	if c == nil {
		c = &Node{Label: of.label, Kind: of.kind, function: of}
		n.Children = append(n.Children, c)
		switch {
		case n.index != nil:
			n.index[of] = c
		case len(n.Children) > fewChildren:
			n.index = make(map[*function]*Node, 2*fewChildren)
			for _, known := range n.Children {
				n.index[known.function] = known
			}
		}
	}
	c.TotalNS += weight
	return c
}

// fewChildren are found by looking at each: nearly all nodes have one child, and
// a map for each of millions of nodes would be most of the memory.
const fewChildren = 8

// find is the child of a function, nil for none.
func (n *Node) find(of *function) *Node {
	if n.index != nil {
		return n.index[of]
	}
	for _, c := range n.Children {
		if c.function == of {
			return c
		}
	}
	return nil
}

func (n *Node) finish() {
	n.index = nil
	slices.SortFunc(n.Children, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(b.TotalNS, a.TotalNS), cmp.Compare(a.Label, b.Label), cmp.Compare(a.Kind, b.Kind))
	})
	for _, c := range n.Children {
		c.finish()
	}
}

// Hottest keeps the count paths that end with the most time of their own, and
// returns how many others there were. The totals stay those of all paths.
func (n *Node) Hottest(count int) (dropped int) {
	var leaves []*Node
	n.walk(func(x *Node) {
		x.hot = false
		if x.SelfNS > 0 {
			leaves = append(leaves, x)
		}
	})
	slices.SortStableFunc(leaves, func(a, b *Node) int { return cmp.Compare(b.SelfNS, a.SelfNS) })
	kept := min(count, len(leaves))
	for _, x := range leaves[:kept] {
		x.hot = true
	}
	n.prune()
	return len(leaves) - kept
}

func (n *Node) walk(visit func(*Node)) {
	visit(n)
	for _, c := range n.Children {
		c.walk(visit)
	}
}

// prune drops the subtrees without a hot node.
func (n *Node) prune() bool {
	n.Children = slices.DeleteFunc(n.Children, func(c *Node) bool { return !c.prune() })
	return n.hot || len(n.Children) > 0
}
