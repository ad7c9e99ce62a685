package rules

import (
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// allocation: the runtime allocates or frees device memory while steps run, which
// waits for the device; a caching allocator that is warm does not.
func allocation(r *evidence.Recording) []evidence.Candidate {
	spans := r.Outermost(func(s timeline.Span) bool {
		return s.Layer == "runtime" && (s.Category == "alloc" || s.Category == "free")
	})
	if r.Percent(spans) <= r.Thresholds.AllocationPercent {
		return nil
	}
	return []evidence.Candidate{{
		Rule: "allocation_in_step", Name: spans.Longest(), Place: r.PlaceOf(spans), Replace: spans.Gone,
		Evidence: r.SpansSQL("layer = 'runtime' AND category IN ('alloc', 'free')"),
		Advice: "Device memory is allocated or freed in the step. Keep shapes the same, do not empty the cache in the loop, " +
			"and let the caching allocator grow segments (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True).",
	}}
}
