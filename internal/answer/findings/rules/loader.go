package rules

import (
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
)

// loader: the training thread waits in the data loader's next. Whatever it does
// there (its own work with num_workers=0, waiting for workers) the step could do
// without.
func loader(r *evidence.Recording) []evidence.Candidate {
	spans := r.Outermost(evidence.Loads)
	if r.Percent(spans) <= r.Thresholds.LoaderPercent {
		return nil
	}
	at := r.Inside(spans)
	if strings.Contains(spans.Longest(), "MultiProcessing") {
		if p := inWorkers(r); p.File != "" {
			at = p
		}
	}
	return []evidence.Candidate{{
		Rule: "loader_starved", Name: spans.Longest(), Place: at, Replace: spans.Gone,
		Evidence: r.SpansSQL("layer = 'scope' AND name LIKE 'enumerate(DataLoader)#%'"),
		Advice: "The step waits for its data. Use more loader workers (num_workers, persistent_workers, prefetch_factor), " +
			"or do less for each sample: decode and augment ahead of time.",
	}}
}

// inWorkers is the line that the loader's own processes spend the most time at while the
// steps run. A worker was forked from the training thread, so that frames of the loop that
// made it lie below those of its own.
func inWorkers(r *evidence.Recording) evidence.Place {
	rows, err := r.DB.Query(r.Ctx, `
		WITH w AS (SELECT s.session_id, s.stack_id, sum(s.weight_ns)::BIGINT AS ns FROM sample s JOIN process p USING (session_id, pid)
			WHERE p.parent_pid = ? AND s.ts_ns BETWEEN ? AND ? GROUP BY ALL)
		SELECT stack_id, ns, coalesce(f."function", ''), coalesce(f.file, ''), coalesce(f.line, 0) FROM (
			SELECT w.stack_id, w.ns, unnest(st.frames) AS f, generate_subscripts(st.frames, 1) AS i
			FROM w JOIN stack st USING (session_id, stack_id)) WHERE f.kind = 'python' ORDER BY stack_id, i`,
		r.Thread.PID, r.Graphs[0].Step.Begin, r.Graphs[len(r.Graphs)-1].Step.Until())
	if r.Failed = err; err != nil {
		return evidence.Place{}
	}
	defer rows.Close()
	weights := map[evidence.Place]int64{}
	var last int64
	own, found := false, false
	for rows.Next() {
		var id, ns int64
		var function, file string
		var line int
		if r.Failed = rows.Scan(&id, &ns, &function, &file, &line); r.Failed != nil {
			return evidence.Place{}
		}
		if id != last {
			last, own, found = id, true, false
		}
		own = own && function != "_worker_loop"
		if own && !found && line > 0 && r.IsUsers(file) {
			weights[evidence.Place{File: file, Line: line, Function: function}] += ns
			found = true
		}
	}
	r.Failed = rows.Err()
	return evidence.Heaviest(weights)
}
