package rules

import (
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

var layoutNames = []string{
	"aten::contiguous", "aten::to", "aten::_to_copy", "aten::copy_", "aten::clone", "CloneBackward0", "ToCopyBackward0",
}

// Layout: copies that only change layout, type or device, in the loop's own code.
var Layout = evidence.Rule{
	Name: "layout", Title: "copies between layouts", Placed: true, Look: lookLayout,
	Thresholds: []thresholds.Threshold{layoutPercent},
}

var layoutPercent = thresholds.Threshold{Name: "layout_percent", Default: 5, Why: "Copies between layouts, types and devices."}

func lookLayout(r *evidence.Recording) ([]evidence.Candidate, error) {
	spans := r.Outermost(evidence.Named(layoutNames...)).Keep(r.OfTheLoop).Keep(ofATensor)
	if r.Percent(spans) < r.Thresholds.Of(layoutPercent) {
		return nil, nil
	}
	return []evidence.Candidate{{
		Name: spans.Longest(), Place: r.PlaceOf(spans), Replace: spans.Gone,
		Evidence: r.SpansThat("name IN (" + evidence.Quoted(layoutNames) + ")"),
		Advice: "Tensors are copied to change their layout or type. Choose one memory format and type for the whole model " +
			"(channels_last, one dtype) and convert once, before the loop.",
	}}, nil
}

// ofATensor: an elementwise operator makes a tensor of each number that it is given,
// which is no copy of the user's.
func ofATensor(g *timeline.StepGraph, span int) bool {
	return !evidence.Within(g, span, func(s timeline.Span) bool { return s.Layer == "op" && slices.Contains(pointwise, s.Name) })
}
