package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/model/graph"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// pair is a forward operator and the backward node of the same sequence number.
type pair struct{ forward, node int }

// Backward: the backward pass of an operator takes far more than twice its
// forward pass. Indexing is the known case: its gradient is scattered.
var Backward = evidence.Rule{
	Name: "backward_anomaly", Title: "a slow backward pass", Placed: true, Look: lookBackward,
	Thresholds: []thresholds.Threshold{backwardRatio, backwardExpected, backwardPercent, backwardLowRatio, backwardLowPercent},
}

var (
	backwardRatio = thresholds.Threshold{
		Name: "backward_ratio", Default: 3,
		Why: "The backward pass of a matrix product takes twice its forward pass; from three times on something else is going on.",
	}
	backwardExpected = thresholds.Threshold{Name: "backward_expected", Default: 2}
	backwardPercent  = thresholds.Threshold{
		Name: "backward_percent", Default: 2,
		Why: "Pairs of forward and backward below this share of a step are ignored.",
	}
	backwardLowRatio = thresholds.Threshold{
		Name: "backward_low_ratio", Default: 0.5,
		Why: "A backward pass below this share of its forward pass makes the forward pass suspect, from this share of a step on.",
	}
	backwardLowPercent = thresholds.Threshold{Name: "backward_low_percent", Default: 20}
)

func lookBackward(r *evidence.Recording) ([]evidence.Candidate, error) {
	type group struct {
		pairs         map[*timeline.StepGraph][]pair
		forward, back float64
	}
	groups := map[string]*group{}
	for _, g := range r.Graphs {
		for _, p := range pairsOf(g) {
			name := g.Spans[p.forward].Name
			if groups[name] == nil {
				groups[name] = &group{pairs: map[*timeline.StepGraph][]pair{}}
			}
			x := groups[name]
			x.pairs[g] = append(x.pairs[g], p)
			x.forward += r.Lasted(g, p.forward)
			x.back += r.Lasted(g, p.node)
		}
	}
	all := steps.Mean(r.Undone) * float64(len(r.Graphs))
	var found []evidence.Candidate
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		x := groups[name]
		ratio := x.back / max(x.forward, 1)
		if ratio < r.Thresholds.Of(backwardLowRatio) && x.back > 0 && 100*x.forward >= r.Thresholds.Of(backwardLowPercent)*all {
			found = append(found, slowForward(r, name, x.pairs, ratio))
			continue
		}
		if ratio <= r.Thresholds.Of(backwardRatio) || 100*(x.forward+x.back) < r.Thresholds.Of(backwardPercent)*all {
			continue
		}
		forward := evidence.Accused{}
		for g, pairs := range x.pairs {
			for _, p := range pairs {
				forward[g] = append(forward[g], p.forward)
			}
		}
		scale := r.Thresholds.Of(backwardExpected) / ratio
		found = append(found, evidence.Candidate{
			Name: name, Place: r.PlaceOf(forward),
			Replace: func(g *timeline.StepGraph, t graph.Times) {
				for _, p := range x.pairs[g] {
					for _, n := range g.Under(p.node) {
						t.Own[n] *= scale
					}
				}
			},
			Evidence: evidence.Query(fmt.Sprintf("SELECT f.name, n.name AS node, count(*) AS pairs, sum(f.duration_ns) / 1e6 AS forward_ms,\n"+
				"  sum(n.duration_ns) / 1e6 AS backward_ms, sum(n.duration_ns) / sum(f.duration_ns) AS ratio\n"+
				"FROM span f JOIN span n ON n.pid = f.pid AND n.sequence_number = f.sequence_number AND n.layer = 'autograd'\n"+
				"WHERE f.layer = 'op' AND f.name = %s AND f.pid = %d AND f.ts_ns BETWEEN %d AND %d GROUP BY ALL",
				evidence.Quoted([]string{name}), r.Thread.PID, r.Graphs[0].Step.Begin, r.Graphs[len(r.Graphs)-1].Step.Until())).
				Rows("span", r.Where()+" AND layer = 'op' AND name = "+evidence.Quoted([]string{name})),
			Advice: fmt.Sprintf("The backward pass of %s takes %.0f times its forward pass. Use an operator whose gradient is "+
				"cheaper: for indexing index_select or embedding, or gather with unique indices.", name, ratio),
		})
	}
	return found, nil
}

// slowForward is about a backward pass that takes far less than its forward pass: what
// the forward pass should take is unknown, so there is no headroom.
func slowForward(r *evidence.Recording, name string, pairs map[*timeline.StepGraph][]pair, ratio float64) evidence.Candidate {
	forward := evidence.Accused{}
	for g, all := range pairs {
		for _, p := range all {
			forward[g] = append(forward[g], p.forward)
		}
	}
	return evidence.Candidate{
		Name: name, Place: r.PlaceOf(forward),
		Evidence: r.SpansThat("layer = 'op' AND name = " + evidence.Quoted([]string{name})),
		Advice: fmt.Sprintf("The forward pass of %s takes %.1f times its backward pass, which is rare: look for an implementation that "+
			"is made for its shapes and types.", name, 1/max(ratio, 1e-9)),
	}
}

// pairsOf joins by the sequence number: of the forward operators that have it,
// the innermost, which made the node.
func pairsOf(g *timeline.StepGraph) (pairs []pair) {
	forward := map[int64]int{}
	for i, s := range g.Spans {
		if s.Layer != "op" || s.Sequence < 0 || evidence.Within(g, i, func(s timeline.Span) bool { return s.Layer == "autograd" }) {
			continue
		}
		if k, ok := forward[s.Sequence]; !ok || cmp.Less(s.End-s.Begin, g.Spans[k].End-g.Spans[k].Begin) {
			forward[s.Sequence] = i
		}
	}
	for i, s := range g.Spans {
		if s.Layer == "autograd" && s.Category == "node" && s.Sequence >= 0 {
			if f, ok := forward[s.Sequence]; ok {
				pairs = append(pairs, pair{f, i})
			}
		}
	}
	return pairs
}
