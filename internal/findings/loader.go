package findings

import "strings"

// loader: the training thread waits in the data loader's next. Whatever it does
// there (its own work with num_workers=0, waiting for workers) the step could do
// without.
func loader(r *recording) []candidate {
	spans := r.outermost(loads)
	if r.percent(spans) <= r.thresholds.LoaderPercent {
		return nil
	}
	at := r.inside(spans)
	if strings.Contains(spans.longest(), "MultiProcessing") {
		if p := r.inWorkers(); p.file != "" {
			at = p
		}
	}
	return []candidate{{
		rule: "loader_starved", name: spans.longest(), place: at, replace: spans.gone,
		evidence: r.spansSQL("layer = 'scope' AND name LIKE 'enumerate(DataLoader)#%'"),
		advice: "The step waits for its data. Use more loader workers (num_workers, persistent_workers, prefetch_factor), " +
			"or do less for each sample: decode and augment ahead of time.",
	}}
}

// inWorkers is the line that the loader's own processes spend the most time at while the
// steps run. A worker was forked from the training thread, so that frames of the loop that
// made it lie below those of its own.
func (r *recording) inWorkers() place {
	rows, err := r.db.Query(r.ctx, `
		WITH w AS (SELECT s.session_id, s.stack_id, sum(s.weight_ns)::BIGINT AS ns FROM sample s JOIN process p USING (session_id, pid)
			WHERE p.parent_pid = ? AND s.ts_ns BETWEEN ? AND ? GROUP BY ALL)
		SELECT stack_id, ns, coalesce(f."function", ''), coalesce(f.file, ''), coalesce(f.line, 0) FROM (
			SELECT w.stack_id, w.ns, unnest(st.frames) AS f, generate_subscripts(st.frames, 1) AS i
			FROM w JOIN stack st USING (session_id, stack_id)) WHERE f.kind = 'python' ORDER BY stack_id, i`,
		r.thread.PID, r.graphs[0].Step.Begin, r.graphs[len(r.graphs)-1].Step.Until())
	if r.failed = err; err != nil {
		return place{}
	}
	defer rows.Close()
	weights := map[place]int64{}
	var last int64
	own, found := false, false
	for rows.Next() {
		var id, ns int64
		var function, file string
		var line int
		if r.failed = rows.Scan(&id, &ns, &function, &file, &line); r.failed != nil {
			return place{}
		}
		if id != last {
			last, own, found = id, true, false
		}
		own = own && function != "_worker_loop"
		if own && !found && line > 0 && r.isUsers(file) {
			weights[place{file, line, function}] += ns
			found = true
		}
	}
	r.failed = rows.Err()
	return heaviest(weights)
}
