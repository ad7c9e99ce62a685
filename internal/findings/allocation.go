package findings

import "github.com/ebpfprof/ebpfprof/internal/timeline"

// allocation: the runtime allocates or frees device memory while steps run, which
// waits for the device; a caching allocator that is warm does not.
func allocation(r *recording) []candidate {
	spans := r.outermost(func(s timeline.Span) bool {
		return s.Layer == "runtime" && (s.Category == "alloc" || s.Category == "free")
	})
	if r.percent(spans) <= r.thresholds.AllocationPercent {
		return nil
	}
	return []candidate{{
		rule: "allocation_in_step", name: spans.longest(), place: r.placeOf(spans), replace: spans.gone,
		evidence: r.spansSQL("layer = 'runtime' AND category IN ('alloc', 'free')"),
		advice: "Device memory is allocated or freed in the step. Keep shapes the same, do not empty the cache in the loop, " +
			"and let the caching allocator grow segments (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True).",
	}}
}
