package rules

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/model/graph"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// RankImbalance: one rank works longer than the others between the collectives that
// all of them wait in.
var RankImbalance = evidence.Rule{
	Name: "rank_imbalance", Title: "one rank keeps the others waiting", OfSteps: true, Look: lookRankImbalance,
	Thresholds: []thresholds.Threshold{imbalancePercent},
}

var imbalancePercent = thresholds.Threshold{
	Name: "imbalance_percent", Default: 5,
	Why: "How much longer than the ranks' median the slowest rank works.",
}

func lookRankImbalance(r *evidence.Recording) ([]evidence.Candidate, error) {
	if len(r.Threads) < 2 {
		return nil, nil
	}
	joined, err := r.Joined()
	if err != nil {
		return nil, err
	}
	if len(joined) > 1 {
		return imbalanceTogether(r, joined), nil
	}
	works, own, err := worksOfRanks(r)
	if err != nil || len(works) < 2 || own < 0 {
		return nil, err
	}
	ns := make([]int64, len(works))
	slowest := 0
	for i, w := range works {
		ns[i] = int64(w.ns)
		if w.ns > works[slowest].ns {
			slowest = i
		}
	}
	usual := steps.Median(ns)
	excess := works[slowest].ns - usual
	if 100*excess < r.Thresholds.Of(imbalancePercent)*r.MeanNS() {
		return nil, nil
	}
	who := works[slowest]
	looked := works[own].ns
	return []evidence.Candidate{{
		Name:     fmt.Sprintf("rank %d", who.rank),
		Replace:  func(g *timeline.StepGraph, t graph.Times) { balance(r, g, t, own == slowest, looked, usual, excess) },
		Evidence: imbalanceSQL(r), Advice: imbalanceAdvice(who, usual),
	}}, nil
}

func imbalanceSQL(r *evidence.Recording) evidence.Evidence {
	return evidence.Query("SELECT p.rank, count(*) AS collectives, sum(s.duration_ns) / 1e6 AS collectives_ms\n" +
		"FROM span s JOIN process p USING (session_id, pid) WHERE p.rank IS NOT NULL AND (s.layer = 'device' AND s.category = 'collective'\n" +
		"  OR s.layer = 'collective' AND s.category NOT IN ('issue', 'communicator', 'wait'))\n" +
		fmt.Sprintf("  AND s.ts_ns BETWEEN %d AND %d GROUP BY 1 ORDER BY 3", r.Graphs[0].Step.Begin, r.Graphs[len(r.Graphs)-1].Step.Until()))
}

func imbalanceAdvice(who rankWork, usual float64) string {
	return fmt.Sprintf("Rank %d works %s a step outside of collectives, the ranks' median is %s: the others wait for it. Look at "+
		"its data (lengths of sequences), its stage of the model and its machine (ebpfprof report --rank %d).", who.rank,
		evidence.Time(who.ns), evidence.Time(usual), who.rank)
}

// balance makes the looked-at rank's step what it would be if the slowest worked as
// long as the median: less work, or shorter waits in collectives.
func balance(r *evidence.Recording, g *timeline.StepGraph, t graph.Times, slowest bool, looked, usual, excess float64) {
	if slowest {
		for n, s := range g.Segments {
			if s.Span < 0 || !communicates(g.Spans[s.Span]) {
				t.Own[n] *= usual / max(looked, 1)
			}
		}
		return
	}
	var waits []int
	for n, s := range g.Segments {
		if s.Span >= 0 && communicates(g.Spans[s.Span]) {
			waits = append(waits, n)
		}
	}
	slices.SortFunc(waits, func(a, b int) int { return cmp.Compare(t.Own[b], t.Own[a]) })
	for _, n := range waits {
		less := min(excess, max(t.Own[n], 0))
		t.Own[n], excess = t.Own[n]-less, excess-less
	}
}

type rankWork struct {
	rank int
	ns   float64 // a step, outside of collectives
}

// worksOfRanks is how long each rank works a step, and which of them is looked at.
func worksOfRanks(r *evidence.Recording) (works []rankWork, own int, err error) {
	own = -1
	rows, err := r.DB.Query(r.Ctx, `
		WITH talks AS (
			SELECT pid, ts_ns, duration_ns FROM span WHERE duration_ns > 0 AND (layer = 'device' AND category = 'collective'
				OR layer = 'collective' AND category NOT IN ('issue', 'communicator', 'wait'))),
		each AS (
			SELECT t.pid, t.step_id, any_value(t.until_ns - t.begin_ns) AS period, coalesce(sum(s.duration_ns), 0) AS talking
			FROM timeline_step t LEFT JOIN talks s ON s.pid = t.pid AND s.ts_ns >= t.begin_ns AND s.ts_ns < t.until_ns
			WHERE t.kind = 'train' AND t.until_ns > t.begin_ns GROUP BY t.pid, t.step_id)
		SELECT e.pid, any_value(p.rank), avg(greatest(period - talking, 0)), sum(talking) FROM each e JOIN process p USING (pid)
		WHERE p.rank IS NOT NULL GROUP BY e.pid ORDER BY 2`)
	if err != nil {
		return nil, own, err
	}
	defer rows.Close()
	for rows.Next() {
		var pid int
		var w rankWork
		var talking float64
		if err := rows.Scan(&pid, &w.rank, &w.ns, &talking); err != nil {
			return nil, own, err
		}
		if talking == 0 {
			continue // its collectives were not recorded
		}
		if pid == r.Thread.PID {
			own = len(works)
		}
		works = append(works, w)
	}
	return works, own, rows.Err()
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
func imbalanceTogether(r *evidence.Recording, joined []*timeline.RanksGraph) []evidence.Candidate {
	works := map[int][]float64{}
	for _, j := range joined {
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
	if len(means) < 2 || 100*(slowest.ns-usual) < r.Thresholds.Of(imbalancePercent)*steps.Mean(r.Undone) {
		return nil
	}
	return []evidence.Candidate{{
		Name:     fmt.Sprintf("rank %d", slowest.rank),
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
