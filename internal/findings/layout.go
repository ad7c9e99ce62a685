package findings

import (
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/timeline"
)

var layoutNames = []string{
	"aten::contiguous", "aten::to", "aten::_to_copy", "aten::copy_", "aten::clone", "CloneBackward0", "ToCopyBackward0",
}

// layout: copies that only change layout, type or device, in the loop's own code.
func layout(r *recording) []candidate {
	spans := r.outermost(named(layoutNames...)).keep(r.ofTheLoop).keep(ofATensor)
	if r.percent(spans) < r.thresholds.LayoutPercent {
		return nil
	}
	return []candidate{{
		rule: "layout", name: spans.longest(), place: r.placeOf(spans), replace: spans.gone,
		evidence: r.spansSQL("name IN (" + quoted(layoutNames) + ")"),
		advice: "Tensors are copied to change their layout or type. Choose one memory format and type for the whole model " +
			"(channels_last, one dtype) and convert once, before the loop.",
	}}
}

// ofATensor: an elementwise operator makes a tensor of each number that it is given,
// which is no copy of the user's.
func ofATensor(g *timeline.StepGraph, span int) bool {
	return !within(g, span, func(s timeline.Span) bool { return s.Layer == "op" && slices.Contains(pointwise, s.Name) })
}
