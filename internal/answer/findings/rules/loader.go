package rules

import (
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
)

// Loader: the training thread waits in the data loader's next. Whatever it does
// there (its own work with num_workers=0, waiting for workers) the step could do
// without.
var Loader = evidence.Rule{
	Name: "loader_starved", Title: "the step waits for its data", Placed: true, Look: lookLoader,
	Thresholds: []thresholds.Threshold{loaderPercent},
}

var loaderPercent = thresholds.Threshold{
	Name: "loader_percent", Default: 5,
	Why: "The training thread waits in the data loader's next for more than this.",
}

func lookLoader(r *evidence.Recording) ([]evidence.Candidate, error) {
	spans := r.Outermost(evidence.Loads)
	if r.Percent(spans) <= r.Thresholds.Of(loaderPercent) {
		return nil, nil
	}
	at := r.Inside(spans)
	if strings.Contains(spans.Longest(), "MultiProcessing") {
		in, err := inWorkers(r)
		if err != nil {
			return nil, err
		}
		if in.File != "" {
			at = in
		}
	}
	return []evidence.Candidate{{
		Name: spans.Longest(), Place: at, Replace: spans.Gone,
		Evidence: r.SpansThat("layer = 'scope' AND name LIKE 'enumerate(DataLoader)#%'"),
		Advice: "The step waits for its data. Use more loader workers (num_workers, persistent_workers, prefetch_factor), " +
			"or do less for each sample: decode and augment ahead of time.",
	}}, nil
}

// inWorkers is the line that the loader's own processes spend the most time at while the
// steps run. A worker was forked from the training thread, so that frames of the loop that
// made it lie below those of its own.
func inWorkers(r *evidence.Recording) (evidence.Place, error) {
	rows, err := r.DB.Query(r.Ctx, `
		WITH w AS (SELECT s.session_id, s.stack_id, sum(s.weight_ns)::BIGINT AS ns FROM sample s JOIN process p USING (session_id, pid)
			WHERE p.parent_pid = ? AND s.ts_ns BETWEEN ? AND ? GROUP BY ALL)
		SELECT stack_id, ns, coalesce(f."function", ''), coalesce(f.file, ''), coalesce(f.line, 0) FROM (
			SELECT w.stack_id, w.ns, unnest(st.frames) AS f, generate_subscripts(st.frames, 1) AS i
			FROM w JOIN stack st USING (session_id, stack_id)) WHERE f.kind = 'python' ORDER BY stack_id, i`,
		r.Thread.PID, r.Graphs[0].Step.Begin, r.Graphs[len(r.Graphs)-1].Step.Until())
	if err != nil {
		return evidence.Place{}, err
	}
	defer rows.Close()
	weights := map[evidence.Place]int64{}
	var last int64
	own, found := false, false
	for rows.Next() {
		var id, ns int64
		var function, file string
		var line int
		if err := rows.Scan(&id, &ns, &function, &file, &line); err != nil {
			return evidence.Place{}, err
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
	return evidence.Heaviest(weights), rows.Err()
}
