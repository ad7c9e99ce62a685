// Package calltree is the context tree of a recording: Python frames, operators,
// native frames, runtime calls and kernels in the order in which they stand in
// each other, with what was measured at each. A node's own values are stored;
// what is below it is added up by Inclusive. Trees of several recordings merge.
package calltree

import (
	"cmp"
	"slices"
	"strings"
)

// Kind of a node.
type Kind string

// The kinds, in the order in which they stand in a path.
const (
	Root     Kind = "root"
	Python   Kind = "python"
	Operator Kind = "op"
	Backward Kind = "autograd" // a node of a backward pass; below its forward operator where that is known
	Native   Kind = "native"
	Call     Kind = "call" // into a runtime or collective library
	Kernel   Kind = "kernel"
)

// Identity is what makes two nodes under the same parent one: of Python file,
// function and line, of native code the build id and the function; an address or
// a launch's shape is no part of it.
type Identity struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
	File string `json:"file,omitempty"` // of native code: the module, and its build id
	Line int32  `json:"line,omitempty"`
}

// Node is one place in the tree.
type Node struct {
	Identity
	Parent   *Node
	Own      map[string]*Metric // by name: host_ns, device_ns, cpu_ns, wait_ns, bytes
	children map[Identity]*Node
	// Link says how a backward node got its place.
	Link string

	// Shortened is, of a root, by what the times of a thread were divided that stood for more time than there was; 0: none.
	Shortened float64

	slices *slicing // of a root: those of the dataset; nil where nothing was recorded in slices
}

// New is the root of an empty tree.
func New() *Node { return &Node{Identity: Identity{Kind: Root}} }

// Child is the node below n with that identity, made if need be.
func (n *Node) Child(id Identity) *Node {
	if c := n.children[id]; c != nil {
		return c
	}
	if n.children == nil {
		n.children = map[Identity]*Node{}
	}
	c := &Node{Identity: id, Parent: n}
	n.children[id] = c
	return c
}

// Add counts a value at the node.
func (n *Node) Add(metric string, value, weight float64) { n.own(metric).Add(value, weight) }

func (n *Node) own(metric string) *Metric {
	if n.Own == nil {
		n.Own = map[string]*Metric{}
	}
	m := n.Own[metric]
	if m == nil {
		m = &Metric{}
		n.Own[metric] = m
	}
	return m
}

// Merge adds another tree to this one. Merging is associative and commutative.
func (n *Node) Merge(o *Node) {
	n.slices = n.slices.with(o.slices)
	for name, m := range o.Own {
		n.own(name).Merge(*m)
	}
	if n.Link == "" {
		n.Link = o.Link
	}
	for id, c := range o.children {
		n.Child(id).Merge(c)
	}
}

// Children are in the order of what a metric adds up to below them, the most first.
func (n *Node) Children(total map[*Node]float64) []*Node {
	all := make([]*Node, 0, len(n.children))
	for _, c := range n.children {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(total[b], total[a]), strings.Compare(a.Name, b.Name), strings.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			strings.Compare(string(a.Kind), string(b.Kind)))
	})
	return all
}

// Inclusive adds up the sums of a metric over each node and all below it.
func (n *Node) Inclusive(metric string) map[*Node]float64 {
	total := map[*Node]float64{}
	var walk func(*Node) float64
	walk = func(n *Node) float64 {
		sum := 0.0
		if m := n.Own[metric]; m != nil {
			sum = m.Sum
		}
		for _, c := range n.children {
			sum += walk(c)
		}
		total[n] = sum
		return sum
	}
	walk(n)
	return total
}

// Turned is the tree from the leaves: what has values of its own comes first,
// with its callers below it.
func (n *Node) Turned(metric string) *Node {
	root := New()
	root.slices = n.slices
	var walk func(*Node)
	walk = func(n *Node) {
		if m := n.Own[metric]; m != nil && n.Kind != Root {
			at := root
			for up := n; up != nil && up.Kind != Root; up = up.Parent {
				at = at.Child(up.Identity)
			}
			at.own(metric).Merge(*m)
		}
		for _, c := range n.children {
			walk(c)
		}
	}
	walk(n)
	return root
}

// Metrics are the names of what the tree has values of.
func (n *Node) Metrics() []string {
	seen := map[string]bool{}
	var walk func(*Node)
	walk = func(n *Node) {
		for name := range n.Own {
			seen[name] = true
		}
		for _, c := range n.children {
			walk(c)
		}
	}
	walk(n)
	var names []string
	for _, name := range Names() {
		if seen[name] {
			names = append(names, name)
		}
	}
	return names
}

// Names are all metrics, in the order in which the first that there is makes the
// best default.
func Names() []string { return []string{"device_ns", "cpu_ns", "host_ns", "wait_ns", "bytes"} }
