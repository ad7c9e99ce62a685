package rules

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/model/graph"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// outlierTogether is collective_outlier by what collectives take once their last rank has come.
func outlierTogether(r *evidence.Recording) []evidence.Candidate {
	durations := map[kind][]int64{}
	each := func(j *timeline.RanksGraph, t graph.Times, part int, do func(span int, own *float64)) {
		of, g := j.Part(t, part), j.Parts[part]
		for _, n := range j.Joined(part) {
			do(g.Segments[n].Span, &of.Own[n])
		}
	}
	for _, j := range r.Joined {
		each(j, j.Times, 0, func(span int, own *float64) {
			k := kindOf(j.Parts[0], span)
			durations[k] = append(durations[k], int64(max(*own, 0)))
		})
	}
	usual, limit := usualOf(durations, r.Thresholds)
	slow := evidence.Accused{}
	for _, j := range r.Joined {
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

// alone is how long the step of each rank would take if it never waited for another.
func alone(j *timeline.RanksGraph, t graph.Times) []float64 {
	all := make([]float64, len(j.Parts))
	for i, g := range j.Parts {
		all[i] = g.Through(g.Graph.Replay(j.Part(t, i))) - float64(g.Step.Begin-j.Begin)
	}
	return all
}

// imbalanceTogether is rank_imbalance by replaying all ranks: the slowest one works as long
// as their median, and each collective begins when its last rank comes to it.
func imbalanceTogether(r *evidence.Recording) []evidence.Candidate {
	works := map[int][]float64{}
	for _, j := range r.Joined {
		for i, ns := range alone(j, evidence.JoinedWithout(j, r.Probes.HitNS)) {
			works[*j.Ranks[i]] = append(works[*j.Ranks[i]], ns)
		}
	}
	slowest, means := rankWork{rank: -1}, []float64(nil)
	for rank, all := range works {
		mean := steps.Mean(all)
		if means = append(means, mean); mean > slowest.ns || mean == slowest.ns && rank < slowest.rank {
			slowest = rankWork{rank, mean}
		}
	}
	usual := steps.Median(means)
	if len(means) < 2 || 100*(slowest.ns-usual) < r.Thresholds.ImbalancePercent*steps.Mean(r.Undone) {
		return nil
	}
	return []evidence.Candidate{{
		Rule: "rank_imbalance", Name: fmt.Sprintf("rank %d", slowest.rank),
		Together: func(j *timeline.RanksGraph, t graph.Times) { asTheMedian(j, t, slowest.rank) },
		Evidence: imbalanceSQL(r), Advice: imbalanceAdvice(slowest, usual),
	}}
}

// asTheMedian makes a rank work between collectives no longer than the ranks' median there.
func asTheMedian(j *timeline.RanksGraph, t graph.Times, rank int) {
	works := make([][]float64, len(j.Parts)) // by rank and stretch, ns
	for i := range j.Parts {
		part := j.Part(t, i)
		for n, k := range j.Stretches(i) {
			for k >= len(works[i]) {
				works[i] = append(works[i], 0)
			}
			if k >= 0 {
				works[i][k] += max(part.Own[n], 0)
			}
		}
	}
	for i := range j.Parts {
		if *j.Ranks[i] != rank {
			continue
		}
		part := j.Part(t, i)
		for n, k := range j.Stretches(i) {
			if k < 0 {
				continue
			}
			var all []float64
			for _, w := range works {
				if k < len(w) {
					all = append(all, w[k])
				}
			}
			if own := works[i][k]; own > 0 {
				part.Own[n] *= min(1, steps.Median(all)/own)
			}
		}
	}
}
