package rules

import (
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// Allocation: the runtime allocates or frees device memory while steps run, which
// waits for the device; a caching allocator that is warm does not.
var Allocation = evidence.Rule{
	Name: "allocation_in_step", Title: "device memory is allocated in the step", Placed: true, Look: lookAllocation,
	Thresholds: []thresholds.Threshold{allocationPercent},
}

var allocationPercent = thresholds.Threshold{
	Name: "allocation_percent", Default: 1,
	Why: "Calls that allocate device memory while steps run.",
}

func lookAllocation(r *evidence.Recording) ([]evidence.Candidate, error) {
	spans := r.Outermost(func(s timeline.Span) bool {
		return s.Layer == "runtime" && (s.Category == "alloc" || s.Category == "free")
	})
	if r.Percent(spans) <= r.Thresholds.Of(allocationPercent) {
		return nil, nil
	}
	return []evidence.Candidate{{
		Name: spans.Longest(), Place: r.PlaceOf(spans), Replace: spans.Gone,
		Evidence: r.SpansThat("layer = 'runtime' AND category IN ('alloc', 'free')"),
		Advice: "Device memory is allocated or freed in the step. Keep shapes the same, do not empty the cache in the loop, " +
			"and let the caching allocator grow segments (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True).",
	}}, nil
}
