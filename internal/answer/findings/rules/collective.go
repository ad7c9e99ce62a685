package rules

import (
	"cmp"
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
	return s.Layer == "device" && s.Category == "collective" || s.Layer == "collective" && s.Category != "issue" && s.Category != "communicator" && s.Category != "wait"
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
		limit[k] = max(t.CollectiveRatio*usual[k], usual[k]+5*steps.Median(apart))
		if len(d) < t.CollectiveCalls {
			limit[k] = math.Inf(1)
		}
	}
	return usual, limit
}

// collectiveOutlier: now and then a collective takes far longer than those of its
// name and size usually do. Where the ranks could be joined that is without what it waits
// for the last of them, which is rank_imbalance.
func collectiveOutlier(r *evidence.Recording) []evidence.Candidate {
	if r.JoinRanks(); r.Failed != nil {
		return nil
	}
	if len(r.Joined) > 1 {
		return outlierTogether(r)
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
	}})
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
	c.Rule, c.Name, c.Place = "collective_outlier", name, r.PlaceOf(launches(slow))
	c.Evidence = fmt.Sprintf("SELECT ts_ns, name, bytes, duration_ns / 1e6 AS ms,\n"+
		"  median(duration_ns) OVER (PARTITION BY name, bytes) / 1e6 AS usual_ms\n"+
		"FROM span WHERE (layer = 'device' AND category = 'collective' OR layer = 'collective' AND category NOT IN ('issue', 'communicator', 'wait'))\n"+
		"  AND %s ORDER BY duration_ns DESC LIMIT 20", r.Where())
	c.Advice = fmt.Sprintf("%d collectives take more than %.1f times what those like them do. Look for the rank that comes late to "+
		"them (ebpfprof views --view collectives), and for the network's errors and other jobs at these times.", count, r.Thresholds.CollectiveRatio)
	return []evidence.Candidate{c}
}

// rankImbalance: one rank works longer than the others between the collectives that
// all of them wait in.
func rankImbalance(r *evidence.Recording) []evidence.Candidate {
	if len(r.Threads) < 2 {
		return nil
	}
	if r.JoinRanks(); r.Failed != nil {
		return nil
	}
	if len(r.Joined) > 1 {
		return imbalanceTogether(r)
	}
	works, own, err := worksOfRanks(r)
	r.Failed = err
	if err != nil || len(works) < 2 || own < 0 {
		return nil
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
	if 100*excess < r.Thresholds.ImbalancePercent*r.MeanNS() {
		return nil
	}
	who := works[slowest]
	looked := works[own].ns
	return []evidence.Candidate{{
		Rule: "rank_imbalance", Name: fmt.Sprintf("rank %d", who.rank),
		Replace:  func(g *timeline.StepGraph, t graph.Times) { balance(r, g, t, own == slowest, looked, usual, excess) },
		Evidence: imbalanceSQL(r), Advice: imbalanceAdvice(who, usual),
	}}
}

func imbalanceSQL(r *evidence.Recording) string {
	return "SELECT p.rank, count(*) AS collectives, sum(s.duration_ns) / 1e6 AS collectives_ms\n" +
		"FROM span s JOIN process p USING (session_id, pid) WHERE p.rank IS NOT NULL AND (s.layer = 'device' AND s.category = 'collective'\n" +
		"  OR s.layer = 'collective' AND s.category NOT IN ('issue', 'communicator', 'wait'))\n" +
		fmt.Sprintf("  AND s.ts_ns BETWEEN %d AND %d GROUP BY 1 ORDER BY 3", r.Graphs[0].Step.Begin, r.Graphs[len(r.Graphs)-1].Step.Until())
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
