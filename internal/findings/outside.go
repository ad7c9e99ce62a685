package findings

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/graph"
	"github.com/ebpfprof/ebpfprof/internal/timeline"
)

// Accusation is what a rule from outside of this package says. Its headroom is found and
// judged as that of the rules here.
type Accusation struct {
	Rule, Title, Name string
	File, Function    string
	Line              int
	EvidenceSQL       string
	Advice            string
	// Spans are what is accused, by span_id; none: nothing is said of a headroom.
	Spans []int64
	// Left is the share of the spans' time that would be left: 0 is nothing.
	Left float64
}

// Outside asks a rule that is not in this package about a thread.
type Outside func(context.Context) ([]Accusation, error)

// Looked is the thread that rules look at: the one whose steps take the most time.
func Looked(threads []timeline.Thread) timeline.Thread {
	return slices.MaxFunc(threads, func(a, b timeline.Thread) int {
		return cmp.Or(cmp.Compare(inSteps(a), inSteps(b)), cmp.Compare(b.PID, a.PID))
	})
}

// RunOutside is Run with rules from outside, beside those of this package or alone.
func RunOutside(ctx context.Context, db *dataset.DB, threads []timeline.Thread, thresholds Thresholds, builtIn bool, outside ...Outside) (*Result, error) {
	var asked []func(*recording) []candidate
	if builtIn {
		asked = append(asked, rules...)
	}
	for _, rule := range outside {
		asked = append(asked, func(r *recording) []candidate {
			accusations, err := rule(r.ctx)
			if err != nil {
				r.failed = err
				return nil
			}
			var all []candidate
			for _, a := range accusations {
				all = append(all, r.candidate(a))
			}
			return all
		})
	}
	return ask(ctx, db, threads, threads, thresholds, asked)
}

// candidate is an accusation with what it leaves out taken from the spans.
func (r *recording) candidate(a Accusation) candidate {
	c := candidate{rule: a.Rule, title: cmp.Or(a.Title, a.Rule), name: a.Name, place: place{a.File, a.Line, a.Function},
		evidence: a.EvidenceSQL, advice: a.Advice}
	if len(a.Spans) == 0 {
		return c
	}
	ids := make(map[int64]bool, len(a.Spans))
	for _, id := range a.Spans {
		ids[id] = true
	}
	spans := r.outermost(func(s timeline.Span) bool { return ids[s.ID] })
	c.name = cmp.Or(c.name, spans.longest())
	if c.place.file == "" {
		c.place = r.placeOf(spans)
	}
	c.replace = spans.shortened(a.Left)
	if len(spans) == 0 {
		r.untold = append(r.untold, fmt.Sprintf("%s: none of the spans that it accuses is in a replayed step", a.Rule))
	}
	return c
}

// shortened leaves a share of the spans' time, and of the time of all inside them.
func (a accused) shortened(left float64) func(*timeline.StepGraph, graph.Times) {
	if left == 0 {
		return a.gone
	}
	return func(g *timeline.StepGraph, t graph.Times) {
		for _, i := range a[g] {
			for _, n := range g.Under(i) {
				t.Own[n] *= left
			}
		}
	}
}
