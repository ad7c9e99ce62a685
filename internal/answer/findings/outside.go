package findings

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/rules"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/graph"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// Accusation is what a rule from outside of this package says. Its headroom is found and
// judged as that of the rules here.
type Accusation struct {
	Rule, Title, Name string
	File, Function    string
	Line              int
	EvidenceSQL       string
	Advice            string
	// Spans are what is accused, by span_id; none: the finding has no headroom.
	Spans []int64
	// Left is the share of the spans' time that would be left: 0 is nothing.
	Left float64
}

// Outside asks a rule that is not in this package about a thread.
type Outside func(context.Context) ([]Accusation, error)

// Looked is the thread that rules look at: the one whose steps take the most time, of a process that works.
func Looked(threads []timeline.Thread) timeline.Thread {
	return slices.MaxFunc(threads, func(a, b timeline.Thread) int {
		return cmp.Or(compareBool(a.Works, b.Works), cmp.Compare(inSteps(a), inSteps(b)), cmp.Compare(b.PID, a.PID))
	})
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// RunOutside is Run with rules from outside, beside those of this package or alone.
func RunOutside(
	ctx context.Context, db *dataset.DB, threads []timeline.Thread, limits thresholds.Set, builtIn bool, outside ...Outside,
) (*Result, error) {
	var asked []evidence.Rule
	if builtIn {
		asked = append(asked, rules.All...)
	}
	for _, rule := range outside {
		asked = append(asked, evidence.Rule{Placed: true, OfSteps: true, Look: func(r *evidence.Recording) (all []evidence.Candidate, err error) {
			accusations, err := rule(r.Ctx)
			for _, a := range accusations {
				c, unknown := candidateOf(r, a)
				if all = append(all, c); unknown != "" {
					all = append(all, evidence.Candidate{Unknown: unknown})
				}
			}
			return all, err
		}})
	}
	result, err := ask(ctx, db, threads, threads, limits, asked)
	if err == nil && len(threads) == 0 {
		result.Untold = append(result.Untold, "no steps were found: only the built-in rules examine a recording without steps")
	}
	return result, err
}

// candidateOf is an accusation, completed from its spans; unknown if none of them is replayed.
func candidateOf(r *evidence.Recording, a Accusation) (c evidence.Candidate, unknown string) {
	c = evidence.Candidate{Rule: a.Rule, Title: cmp.Or(a.Title, a.Rule), Name: a.Name,
		Place:    evidence.Place{File: a.File, Line: a.Line, Function: a.Function},
		Evidence: evidence.Query(a.EvidenceSQL), Advice: a.Advice}
	if len(a.Spans) == 0 {
		return c, ""
	}
	ids := make(map[int64]bool, len(a.Spans))
	for _, id := range a.Spans {
		ids[id] = true
	}
	spans := r.Outermost(func(s timeline.Span) bool { return ids[s.ID] })
	c.Name = cmp.Or(c.Name, spans.Longest())
	if c.Place.File == "" {
		c.Place = r.PlaceOf(spans)
	}
	c.Replace = shortened(spans, a.Left)
	if len(spans) == 0 {
		unknown = fmt.Sprintf("%s: none of the spans that it accuses is in a replayed step", a.Rule)
	}
	return c, unknown
}

// shortened leaves a share of the spans' time, and of the time of all inside them.
func shortened(a evidence.Accused, left float64) func(*timeline.StepGraph, graph.Times) {
	if left == 0 {
		return a.Gone
	}
	return func(g *timeline.StepGraph, t graph.Times) {
		for _, i := range a[g] {
			for _, n := range g.Under(i) {
				t.Own[n] *= left
			}
		}
	}
}
