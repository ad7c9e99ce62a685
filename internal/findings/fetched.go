package findings

import (
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/graph"
	"github.com/ebpfprof/ebpfprof/internal/timeline"
)

var fetchNames = []string{"aten::item", "aten::is_nonzero", "aten::_local_scalar_dense"}

// viewNames only say which element comes next.
var viewNames = []string{
	"aten::select", "aten::slice", "aten::as_strided", "aten::unbind", "aten::view", "aten::reshape", "aten::detach",
	"aten::squeeze", "aten::unsqueeze", "aten::narrow", "aten::alias", "aten::resolve_conj", "aten::resolve_neg",
}

func fetches(s timeline.Span) bool {
	return slices.Contains(fetchNames, s.Name) || s.Layer == "runtime" && s.Category == "sync"
}

// fetched: values are fetched from tensors, or the host waits for the device, in
// the loop. Of a row of fetches what lies between them goes with them: the loop
// that fetches one element after the other.
func fetched(r *recording) []candidate {
	spans := r.outermost(fetches).keep(ofTheLoop)
	rows := map[*timeline.StepGraph][]int{} // segments
	var sum, all float64
	for i, g := range r.graphs {
		rows[g] = rowsOf(g, spans[g], r.thread.TID)
		for _, n := range rows[g] {
			sum += float64(g.Segments[n].To - g.Segments[n].From)
		}
		all += r.periods[i]
	}
	if 100*sum <= r.thresholds.SyncPercent*all {
		return nil
	}
	return []candidate{{
		rule: "sync_in_step", name: spans.longest(), place: r.placeOf(spans),
		replace: func(g *timeline.StepGraph, t graph.Times) {
			for _, n := range rows[g] {
				t.Own[n], t.Free[n] = min(t.Own[n], 0), true
			}
		},
		evidence: r.spansSQL("(name IN (" + quoted(fetchNames) + ") OR layer = 'runtime' AND category = 'sync')"),
		advice: "Values are fetched from tensors in the step, and each fetch waits for the device. Keep them as tensors, " +
			"add up there, and fetch once every few steps.",
	}}
}

// rowsOf are the segments of the fetches, and of what lies between two of them
// where that is only the choice of the next element.
func rowsOf(g *timeline.StepGraph, spans []int, tid int) (segments []int) {
	for _, i := range spans {
		segments = append(segments, g.Under(i)...)
	}
	for k := 1; k < len(spans); k++ {
		from, to := g.Spans[spans[k-1]].End-g.Step.Begin, g.Spans[spans[k]].Begin-g.Step.Begin
		if g.Spans[spans[k]].TID != tid || g.Spans[spans[k-1]].TID != tid {
			continue
		}
		var between []int
		only := true
		for n, s := range g.Segments {
			if s.Device || s.TID != tid || s.From < from || s.To > to {
				continue
			}
			if s.Span >= 0 && g.Spans[s.Span].Layer == "op" && !slices.Contains(viewNames, g.Spans[s.Span].Name) {
				only = false
				break
			}
			between = append(between, n)
		}
		if only && to-from < 1_000_000 {
			segments = append(segments, between...)
		}
	}
	return segments
}
