package rules

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/model/graph"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// SmallCopies: many copies a step that carry little each. They could be one, which
// goes as fast as the largest of them.
var SmallCopies = evidence.Rule{
	Name: "small_copies", Title: "many small copies", Placed: true, Look: lookSmallCopies,
	Thresholds: []thresholds.Threshold{copiesLeast, copyBytes},
}

var (
	copiesLeast = thresholds.Threshold{
		Name: "small_copies", Default: 8, Whole: true,
		Why: "Copies: at least this many a step, below this many bytes on average (Neuron: 32 KiB is the target).",
	}
	copyBytes = thresholds.Threshold{Name: "small_copy_bytes", Default: 32768}
)

func lookSmallCopies(r *evidence.Recording) ([]evidence.Candidate, error) {
	copies := r.Outermost(func(s timeline.Span) bool {
		return s.OnDevice() && s.Category == "copy" && s.Bytes > 0 && s.Bounds == nil
	})
	where := "layer = 'device' AND category = 'copy'"
	if len(copies) == 0 {
		copies = r.Outermost(func(s timeline.Span) bool { return s.Layer == "runtime" && s.Category == "copy" && s.Bytes > 0 })
		where = "layer = 'runtime' AND category = 'copy'"
	}
	var bytes, count int64
	fastest := 0.0 // bytes a nanosecond, of the largest
	var largest int64
	for g, all := range copies {
		for _, i := range all {
			s := g.Spans[i]
			bytes, count = bytes+s.Bytes, count+1
			if s.Bytes > largest && s.End > s.Begin {
				largest, fastest = s.Bytes, float64(s.Bytes)/float64(s.End-s.Begin)
			}
		}
	}
	few := count < int64(r.Thresholds.Count(copiesLeast)*len(r.Graphs))
	if few || fastest == 0 || float64(bytes)/float64(count) >= r.Thresholds.Of(copyBytes) {
		return nil, nil
	}
	return []evidence.Candidate{{
		Name: copies.Longest(), Place: r.PlaceOf(launches(copies)),
		Replace: func(g *timeline.StepGraph, t graph.Times) {
			var sum int64
			for _, i := range copies[g] {
				sum += g.Spans[i].Bytes
			}
			for k, i := range copies[g] {
				if k == 0 {
					scaleTo(g, t, i, float64(sum)/fastest)
					continue
				}
				with := i // with the call that launched it
				if p := g.Parent(i); p >= 0 && g.Spans[i].OnDevice() {
					with = p
				}
				for _, n := range g.Under(with) {
					t.Own[n], t.Free[n] = min(t.Own[n], 0), true
				}
			}
		},
		Evidence: evidence.Query(fmt.Sprintf("SELECT name, count(*) AS copies, avg(bytes) AS mean_bytes, max(bytes) AS largest_bytes,\n"+
			"  sum(duration_ns) / 1e6 AS total_ms FROM span WHERE %s AND bytes > 0 AND %s\nGROUP BY name ORDER BY copies DESC", where, r.Where())).
			Rows("span", r.Where()+" AND bytes > 0 AND "+where),
		Advice: fmt.Sprintf("%d copies a step carry %.1f KiB each on average. Put the tensors together and copy once: a larger batch, "+
			"torch.cat before the copy, one pinned buffer.", count/int64(len(r.Graphs)), float64(bytes)/float64(count)/1024),
	}}, nil
}

// launches are the calls that launched the spans, or the spans themselves.
func launches(a evidence.Accused) evidence.Accused {
	calls := evidence.Accused{}
	for g, all := range a {
		for _, i := range all {
			if p := g.Parent(i); p >= 0 && g.Spans[i].OnDevice() {
				i = p
			}
			calls[g] = append(calls[g], i)
		}
	}
	return calls
}

// scaleTo makes a span, with all inside it, take so many nanoseconds, if it takes more.
func scaleTo(g *timeline.StepGraph, t graph.Times, span int, ns float64) {
	took := float64(g.Spans[span].End - g.Spans[span].Begin)
	if took <= ns || took <= 0 {
		return
	}
	for _, n := range g.Under(span) {
		t.Own[n] *= ns / took
	}
}
