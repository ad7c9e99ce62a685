package findings

var layoutNames = []string{
	"aten::contiguous", "aten::to", "aten::_to_copy", "aten::copy_", "aten::clone", "CloneBackward0", "ToCopyBackward0",
}

// layout: copies that only change layout, type or device, in the loop's own code.
func layout(r *recording) []candidate {
	spans := r.outermost(named(layoutNames...)).keep(ofTheLoop)
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
