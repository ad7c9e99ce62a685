package timeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/graph"
)

// RanksGraph is one step of several ranks that can be replayed together: no rank gets on with
// a collective before the last has come to it.
type RanksGraph struct {
	Parts []*StepGraph // a rank each
	Ranks []*int
	// Graph has the nodes of all parts, one after the other; its times are nanoseconds since
	// Begin, the first of theirs. Part i's are from First[i] on.
	Graph *graph.Graph
	Times graph.Times // as measured
	Begin int64
	First []int
	Met   int // collectives that ranks are joined in
	Apart int // that are left out, since a rank had left before another came: clocks, or a wrong pair

	groups [][]int // their nodes
}

// mostRanks bounds the memory of a graph.
const mostRanks = 64

// JoinRanks makes one graph of a step of each rank.
func JoinRanks(parts []*StepGraph, ranks []*int) (*RanksGraph, error) {
	r := &RanksGraph{Parts: parts, Ranks: ranks}
	r.Begin = parts[0].Step.Begin
	for _, p := range parts {
		r.Begin = min(r.Begin, p.Step.Begin)
	}
	var nodes graph.Builder
	together := map[meeting][]int{}
	for i, p := range parts {
		first := nodes.Append(p.Graph, float64(p.Step.Begin-r.Begin), func(lane int) int { return lane*len(parts) + i })
		r.First = append(r.First, first)
		for m, n := range p.meetings() {
			together[m] = append(together[m], first+n)
		}
	}
	for _, members := range together {
		if len(members) < 2 {
			continue
		}
		if !nodes.Overlap(members...) {
			r.Apart++
			continue
		}
		nodes.Group(members...)
		r.groups = append(r.groups, members)
	}
	r.Met = len(r.groups)
	var err error
	if r.Graph, err = nodes.Graph(); err != nil {
		return nil, fmt.Errorf("joining the ranks of step %d: %w", parts[0].Step.Number, err)
	}
	r.Times = r.Graph.Measured()
	return r, nil
}

// Part is the share of the times that belongs to one rank, numbered as its own graph is: to
// change it changes these.
func (r *RanksGraph) Part(t graph.Times, i int) graph.Times {
	first, n := r.First[i], len(r.Parts[i].Segments)
	return graph.Times{Delay: t.Delay[first : first+n], Own: t.Own[first : first+n]}
}

// End is when the rank's training thread is through with its step, in a run of the graph.
func (r *RanksGraph) End(run graph.Run, i int) float64 {
	first, n := r.First[i], len(r.Parts[i].Segments)
	return r.Parts[i].Through(graph.Run{Start: run.Start[first : first+n], End: run.End[first : first+n]})
}

// Through is when the training thread is through with the step, in a run of the graph.
func (g *StepGraph) Through(run graph.Run) (end float64) {
	for n, s := range g.Segments {
		if !s.Device && s.TID == g.main {
			end = max(end, run.End[n])
		}
	}
	return end
}

// Joined are a rank's own nodes of the joined collectives.
func (r *RanksGraph) Joined(i int) (nodes []int) {
	for _, members := range r.groups {
		for _, node := range members {
			if part, n := r.at(node); part == i {
				nodes = append(nodes, n)
			}
		}
	}
	return nodes
}

// Stretches says of each segment of a rank how many of the joined collectives it had come to
// before, and -1 of the collectives themselves.
func (r *RanksGraph) Stretches(i int) []int {
	g := r.Parts[i]
	stretches := make([]int, len(g.Segments))
	var met []int64
	for _, n := range r.Joined(i) {
		met = append(met, g.Segments[n].From)
		stretches[n] = -1
	}
	slices.Sort(met)
	for n, s := range g.Segments {
		if stretches[n] == 0 {
			stretches[n], _ = slices.BinarySearch(met, s.From)
		}
	}
	return stretches
}

// at is the rank and its own number of a node.
func (r *RanksGraph) at(node int) (part, n int) {
	for part+1 < len(r.First) && r.First[part+1] <= node {
		part++
	}
	return part, node - r.First[part]
}

// Beside is the step of another rank that ran at the same time as the given one: that with
// the longest stretch in common. False where none was.
func Beside(t Thread, s Step) (beside Step, ok bool) {
	longest := int64(0)
	for _, other := range t.Steps {
		if common := min(other.Until(), s.Until()) - max(other.Begin, s.Begin); common > longest && other.Period > 0 {
			beside, longest = other, common
		}
	}
	return beside, longest > 0
}

// others are the threads of other ranks, one each.
func others(threads []Thread, t Thread) (all []Thread) {
	if t.Rank == nil {
		return nil
	}
	seen := map[int]bool{*t.Rank: true}
	for _, o := range threads {
		if o.Rank != nil && !seen[*o.Rank] && len(seen) < mostRanks {
			seen[*o.Rank] = true
			all = append(all, o)
		}
	}
	return all
}

// OverRanks joins steps of a thread with those of the other ranks that ran beside them, an
// entry for each; nil where no other rank's was joined to it by a collective.
func OverRanks(ctx context.Context, db *dataset.DB, threads []Thread, t Thread, steps []Step, graphs []*StepGraph) ([]*RanksGraph, error) {
	parts, ranks := make([][]*StepGraph, len(steps)), make([][]*int, len(steps))
	for i, g := range graphs {
		parts[i], ranks[i] = []*StepGraph{g}, []*int{t.Rank}
	}
	for _, other := range others(threads, t) {
		var theirs []Step
		var of []int
		for i, s := range steps {
			if b, ok := Beside(other, s); ok && (len(theirs) == 0 || b.Begin > theirs[len(theirs)-1].Begin) {
				theirs, of = append(theirs, b), append(of, i)
			}
		}
		spans, err := SpansOf(ctx, db, other, theirs)
		if err != nil {
			return nil, err
		}
		allocations, err := AllocationsOf(ctx, db, other, theirs)
		if err != nil {
			return nil, err
		}
		for k, s := range theirs {
			g, err := NewStepGraphAt(other, s, spans[k], graphs[of[k]].End)
			if err != nil {
				return nil, err
			}
			g.Allocated(allocations[k])
			parts[of[k]], ranks[of[k]] = append(parts[of[k]], g), append(ranks[of[k]], other.Rank)
		}
	}
	all := make([]*RanksGraph, len(steps))
	for i := range steps {
		if len(parts[i]) < 2 {
			continue
		}
		r, err := JoinRanks(parts[i], ranks[i])
		if err != nil && !errors.Is(err, graph.ErrCycle) {
			return nil, err
		}
		if err == nil && r.Met > 0 { // in a circle nothing can be replayed: the numbers are not what they seem
			all[i] = r
		}
	}
	return all, nil
}
