// Package graph replays a piece of a job with some of its times replaced.
//
// A graph has nodes (something that ran from a start to an end) and the reasons
// why each began and ended when it did: it began after others, it waited for
// others while it ran, it could not get on before all members of its group had
// begun. Replaying it without a change gives the measured times; replaying it
// with one node's time replaced says what that would have brought.
//
// It works on plain values and imports nothing of this project: the step of a
// dataset, the operations of a cluster and a live worker all feed it. The unit
// is the caller's. Times that are whole numbers (nanoseconds since the step's
// begin) are replayed exactly, as float64 holds them up to 2^53.
package graph

import (
	"errors"
	"fmt"
)

// ErrCycle is returned by Builder.Graph when nodes wait for one another in a circle.
var ErrCycle = errors.New("dependencies form a cycle")

// Node is something that ran.
type Node struct {
	Start, End float64
	// Lane is where it ran (a thread, a stream): among equals the critical path
	// stays in its lane.
	Lane int
}

// Builder collects nodes and edges. Its zero value is ready for use.
type Builder struct {
	// KeepBackward keeps edges that contradict the measured times. Without it
	// such an edge is dropped and counted: what ended later than something began
	// was no reason for it to begin.
	KeepBackward bool

	nodes  []Node
	after  edges
	waits  edges
	groups [][]int32
	member []int32 // group of a node, or -1
}

type edges struct{ node, dependency []int32 }

func (e *edges) add(node, dependency int) {
	e.node, e.dependency = append(e.node, int32(node)), append(e.dependency, int32(dependency))
}

// Add returns the number of the node: they count from 0.
func (b *Builder) Add(n Node) int {
	b.nodes, b.member = append(b.nodes, n), append(b.member, -1)
	return len(b.nodes) - 1
}

// After says that the node could not begin before the dependency had ended.
func (b *Builder) After(node, dependency int) { b.after.add(node, dependency) }

// Waits says that the node, while it ran, waited for the dependency's end: what
// a synchronising call does.
func (b *Builder) Waits(node, dependency int) { b.waits.add(node, dependency) }

// Group says that no member gets on before all of them have begun: what a
// collective does. A node is in at most one group.
func (b *Builder) Group(members ...int) {
	g := make([]int32, len(members))
	for i, m := range members {
		g[i] = int32(m)
		b.member[m] = int32(len(b.groups))
	}
	b.groups = append(b.groups, g)
}

// Append takes in the nodes and edges of a finished graph, shifted in time and with
// its lanes renamed, and returns the number of its first node.
func (b *Builder) Append(g *Graph, shift float64, lane func(int) int) (first int) {
	first = len(b.nodes)
	for _, n := range g.nodes {
		b.Add(Node{n.Start + shift, n.End + shift, lane(n.Lane)})
	}
	for n := range int32(len(g.nodes)) {
		for _, d := range g.after.of(n) {
			b.After(first+int(n), first+int(d))
		}
		for _, d := range g.waits.of(n) {
			b.Waits(first+int(n), first+int(d))
		}
	}
	for _, members := range g.groups {
		all := make([]int, len(members))
		for i, m := range members {
			all[i] = first + int(m)
		}
		b.Group(all...)
	}
	return first
}

// Overlap says whether, as measured, all nodes ran at one time: what the members of a group do.
func (b *Builder) Overlap(members ...int) bool {
	start, end := b.nodes[members[0]].Start, b.nodes[members[0]].End
	for _, m := range members {
		start, end = max(start, b.nodes[m].Start), min(end, b.nodes[m].End)
	}
	return start <= end
}

// Graph is a finished graph. It is immutable: replays may run side by side.
type Graph struct {
	nodes   []Node
	after   index
	waits   index
	groups  [][]int32
	member  []int32
	order   []int32
	dropped int
}

// index holds the dependencies of node n at targets[first[n]:first[n+1]].
type index struct{ first, targets []int32 }

func (x index) of(n int32) []int32 { return x.targets[x.first[n]:x.first[n+1]] }

func (e edges) index(nodes int) index {
	x := index{first: make([]int32, nodes+1), targets: make([]int32, len(e.node))}
	for _, n := range e.node {
		x.first[n+1]++
	}
	for n := range nodes {
		x.first[n+1] += x.first[n]
	}
	next := append([]int32(nil), x.first[:nodes]...)
	for i, n := range e.node {
		x.targets[next[n]] = e.dependency[i]
		next[n]++
	}
	return x
}

// Graph orders the nodes. The error is ErrCycle.
func (b *Builder) Graph() (*Graph, error) {
	g := &Graph{nodes: b.nodes, groups: b.groups, member: b.member}
	after, waits := b.after, b.waits
	if !b.KeepBackward {
		after = g.forward(after, func(n Node) float64 { return n.Start })
		waits = g.forward(waits, func(n Node) float64 { return n.End })
	}
	g.after, g.waits = after.index(len(g.nodes)), waits.index(len(g.nodes))
	if err := g.sort(); err != nil {
		return nil, err
	}
	return g, nil
}

// forward leaves out edges whose dependency ended after the node's limit.
func (g *Graph) forward(e edges, limit func(Node) float64) (kept edges) {
	for i, n := range e.node {
		if d := e.dependency[i]; g.nodes[d].End > limit(g.nodes[n]) {
			g.dropped++
		} else {
			kept.add(int(n), int(d))
		}
	}
	return kept
}

// Len is the number of nodes.
func (g *Graph) Len() int { return len(g.nodes) }

// Node is the node as it was measured.
func (g *Graph) Node(n int) Node { return g.nodes[n] }

// Dropped is how many edges contradicted the measured times and were left out.
func (g *Graph) Dropped() int { return g.dropped }

// The events of a replay, each once and in an order that respects all edges:
// node n begins (n), node n ends (len+n), all members of group k have begun (2*len+k).
func (g *Graph) sort() error {
	n := int32(len(g.nodes))
	var before edges // event, the event before it
	for v := range n {
		before.add(int(n+v), int(v))
		for _, d := range g.after.of(v) {
			before.add(int(v), int(n+d))
		}
		for _, d := range g.waits.of(v) {
			before.add(int(n+v), int(n+d))
		}
	}
	for k, members := range g.groups {
		for _, m := range members {
			before.add(int(2*n)+k, int(m))
			before.add(int(n+m), int(2*n)+k)
		}
	}
	events := int(2*n) + len(g.groups)
	missing := make([]int32, events)
	for _, e := range before.node {
		missing[e]++
	}
	next := edges{node: before.dependency, dependency: before.node}.index(events)
	g.order = make([]int32, 0, events)
	for e := range int32(events) {
		if missing[e] == 0 {
			g.order = append(g.order, e)
		}
	}
	for i := 0; i < len(g.order); i++ {
		for _, e := range next.of(g.order[i]) {
			if missing[e]--; missing[e] == 0 {
				g.order = append(g.order, e)
			}
		}
	}
	if len(g.order) == events {
		return nil
	}
	for e := range int32(events) {
		if missing[e] > 0 {
			return fmt.Errorf("%w: node %d is in it or waits for it", ErrCycle, e%max(n, 1))
		}
	}
	return nil
}
