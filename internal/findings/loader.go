package findings

// loader: the training thread waits in the data loader's next. Whatever it does
// there (its own work with num_workers=0, waiting for workers) the step could do
// without.
func loader(r *recording) []candidate {
	spans := r.outermost(loads)
	if r.percent(spans) <= r.thresholds.LoaderPercent {
		return nil
	}
	return []candidate{{
		rule: "loader_starved", name: spans.longest(), place: r.inside(spans), replace: spans.gone,
		evidence: r.spansSQL("layer = 'scope' AND name LIKE 'enumerate(DataLoader)#%'"),
		advice: "The step waits for its data. Use more loader workers (num_workers, persistent_workers, prefetch_factor), " +
			"or do less for each sample: decode and augment ahead of time.",
	}}
}
