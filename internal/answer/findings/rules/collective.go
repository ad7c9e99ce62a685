package rules

import (
	"fmt"
	"math"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/model/graph"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// communicates are collectives that take as long as they say: a device's, or calls
// that return when they are done. What only issues one says nothing.
func communicates(s timeline.Span) bool {
	if s.Layer == "device" {
		return s.Category == "collective"
	}
	return s.Layer == "collective" && !slices.Contains([]string{"issue", "communicator", "wait"}, s.Category)
}

// kind are collectives that take alike.
type kind struct {
	name  string
	bytes int64
}

func kindOf(g *timeline.StepGraph, span int) kind {
	return kind{g.Spans[span].Name, g.Spans[span].Bytes}
}

// usualOf is the median of each kind, and from where on one is an outlier; of kinds with few
// there is none.
func usualOf(durations map[kind][]int64, t thresholds.Set) (usual, limit map[kind]float64) {
	usual, limit = map[kind]float64{}, map[kind]float64{}
	for k, d := range durations {
		usual[k] = steps.Median(d)
		var apart []int64
		for _, v := range d {
			apart = append(apart, int64(math.Abs(float64(v)-usual[k])))
		}
		limit[k] = max(t.Of(collectiveRatio)*usual[k], usual[k]+5*steps.Median(apart))
		if len(d) < t.Count(collectiveCalls) {
			limit[k] = math.Inf(1)
		}
	}
	return usual, limit
}

// CollectiveOutlier: at times a collective takes far longer than those of its
// name and size usually do. Where the ranks could be joined that is without what it waits
// for the last of them, which is rank_imbalance.
var CollectiveOutlier = evidence.Rule{
	Name: "collective_outlier", Title: "collectives that now and then take too long", Placed: true, Look: lookCollectiveOutlier,
	Thresholds: []thresholds.Threshold{collectiveRatio, collectiveCalls},
}

var (
	collectiveRatio = thresholds.Threshold{
		Name: "collective_ratio", Default: 1.5,
		Why: "A collective against the median of its name and size, of at least this many.",
	}
	collectiveCalls = thresholds.Threshold{Name: "collective_calls", Default: 8, Whole: true}
)

func lookCollectiveOutlier(r *evidence.Recording) ([]evidence.Candidate, error) {
	joined, err := r.Joined()
	if err != nil {
		return nil, err
	}
	if len(joined) > 1 {
		return outlierTogether(r, joined), nil
	}
	durations := map[kind][]int64{}
	all := r.Outermost(communicates)
	for g, spans := range all {
		for _, i := range spans {
			durations[kindOf(g, i)] = append(durations[kindOf(g, i)], evidence.Duration(g, i))
		}
	}
	usual, limit := usualOf(durations, r.Thresholds)
	slow := all.Keep(func(g *timeline.StepGraph, i int) bool { return float64(evidence.Duration(g, i)) > limit[kindOf(g, i)] })
	return outliers(r, slow, evidence.Candidate{Replace: func(g *timeline.StepGraph, t graph.Times) {
		for _, i := range slow[g] {
			scaleTo(g, t, i, usual[kindOf(g, i)])
		}
	}}), nil
}

// outliers makes a finding of the slow ones, replaced as c says.
func outliers(r *evidence.Recording, slow evidence.Accused, c evidence.Candidate) []evidence.Candidate {
	if len(slow) == 0 {
		return nil
	}
	name, count := slow.Longest(), 0
	for _, spans := range slow {
		count += len(spans)
	}
	c.Name, c.Place = name, r.PlaceOf(launches(slow))
	c.Evidence = evidence.Query(fmt.Sprintf("SELECT ts_ns, name, bytes, duration_ns / 1e6 AS ms,\n"+
		"  median(duration_ns) OVER (PARTITION BY name, bytes) / 1e6 AS usual_ms\n"+
		"FROM span WHERE (layer = 'device' AND category = 'collective'\n"+
		"  OR layer = 'collective' AND category NOT IN ('issue', 'communicator', 'wait'))\n"+
		"  AND %s ORDER BY duration_ns DESC LIMIT 20", r.Where())).Rows("span", r.Where()+" AND name = "+evidence.Quoted([]string{name}))
	c.Advice = fmt.Sprintf("%d collectives take more than %.1f times what similar ones take. Look for the rank that comes late to "+
		"them (ebpfprof views --view collectives), and for network errors and other jobs at these times.",
		count, r.Thresholds.Of(collectiveRatio))
	return []evidence.Candidate{c}
}

// outlierTogether is collective_outlier by what collectives take once their last rank has come.
func outlierTogether(r *evidence.Recording, joined []*timeline.RanksGraph) []evidence.Candidate {
	durations := map[kind][]int64{}
	each := func(j *timeline.RanksGraph, t graph.Times, part int, do func(span int, own *float64)) {
		of, g := j.Part(t, part), j.Parts[part]
		for _, n := range j.Joined(part) {
			do(g.Segments[n].Span, &of.Own[n])
		}
	}
	for _, j := range joined {
		each(j, j.Times, 0, func(span int, own *float64) {
			k := kindOf(j.Parts[0], span)
			durations[k] = append(durations[k], int64(max(*own, 0)))
		})
	}
	usual, limit := usualOf(durations, r.Thresholds)
	slow := evidence.Accused{}
	for _, j := range joined {
		each(j, j.Times, 0, func(span int, own *float64) {
			if g := j.Parts[0]; *own > limit[kindOf(g, span)] {
				slow[g] = append(slow[g], span)
			}
		})
	}
	return outliers(r, slow, evidence.Candidate{Together: func(j *timeline.RanksGraph, t graph.Times) {
		for i, g := range j.Parts {
			each(j, t, i, func(span int, own *float64) {
				if k := kindOf(g, span); limit[k] > 0 && *own > limit[k] {
					*own = usual[k]
				}
			})
		}
	}})
}
