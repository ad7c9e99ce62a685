package rules

import (
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/model/graph"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

var fetchNames = []string{"aten::item", "aten::is_nonzero", "aten::_local_scalar_dense"}

// viewNames only say which element comes next.
var viewNames = []string{
	"aten::select", "aten::slice", "aten::as_strided", "aten::unbind", "aten::view", "aten::reshape", "aten::detach",
	"aten::squeeze", "aten::unsqueeze", "aten::narrow", "aten::alias", "aten::resolve_conj", "aten::resolve_neg",
	"aten::expand", "aten::t", "aten::transpose", "aten::permute", "aten::flatten", "aten::_unsafe_view", "aten::view_as", "aten::expand_as",
}

func fetches(s timeline.Span) bool {
	return slices.Contains(fetchNames, s.Name) || s.Layer == "runtime" && s.Category == "sync"
}

// Fetched: values are fetched from tensors, or the host waits for the device, in
// the loop. Of a row of fetches what lies between them goes with them: the loop
// that fetches one element after the other. Without a device a fetch waits for nothing:
// a few in a step are fine there, and only rows of them are accused, for what they cost.
var Fetched = evidence.Rule{
	Name: "sync_in_step", Title: "values are fetched in the step", Placed: true, Look: lookFetched,
	Thresholds: []thresholds.Threshold{syncPercent, syncFetches},
}

var (
	syncPercent = thresholds.Threshold{Name: "sync_percent", Default: 1, Why: "Values fetched from tensors, and calls that wait for a device."}
	syncFetches = thresholds.Threshold{
		Name: "sync_fetches", Default: 8, Whole: true,
		Why: "Without a device to wait for, at least this many fetches a step: a few cost next to nothing.",
	}
)

func lookFetched(r *evidence.Recording) ([]evidence.Candidate, error) {
	spans := r.Outermost(fetches).Keep(r.OfTheLoop)
	rows := map[*timeline.StepGraph][]int{} // segments
	var sum, all float64
	for i, g := range r.Graphs {
		rows[g] = rowsOf(g, spans[g], r.Thread.TID)
		for _, n := range rows[g] {
			sum += float64(g.Segments[n].To-g.Segments[n].From) - evidence.OffOf(g, n, r.Probes.HitNS)
		}
		all += r.Undone[i]
	}
	if 100*sum <= r.Thresholds.Of(syncPercent)*all {
		return nil, nil
	}
	count := 0
	for _, all := range spans {
		count += len(all)
	}
	each := float64(count) / float64(len(r.Graphs))
	waits, err := drivesDevice(r)
	if err != nil || !waits && each < float64(r.Thresholds.Count(syncFetches)) {
		return nil, err
	}
	advice := "Values are fetched from tensors in the step, and each fetch waits for the device. Keep them as tensors, " +
		"add up there, and fetch once every few steps."
	title := ""
	if !waits {
		title = "values fetched one by one"
		advice = fmt.Sprintf("%.0f values a step are fetched from tensors one by one. No device is there to wait for: each costs its calls of "+
			"operators and the interpreter's way to them. Compute on the whole tensor, or fetch it once (tolist, numpy).", each)
	}
	return []evidence.Candidate{{
		Title: title, Name: spans.Longest(), Place: r.PlaceOf(spans),
		Replace: func(g *timeline.StepGraph, t graph.Times) {
			for _, n := range rows[g] {
				t.Own[n], t.Free[n] = min(t.Own[n], 0), true
			}
		},
		Evidence: r.SpansThat("(name IN (" + evidence.Quoted(fetchNames) + ") OR layer = 'runtime' AND category = 'sync')"),
		Advice:   advice,
	}}, nil
}

// drivesDevice says whether the process gives work to a device, or has memory there: then a
// fetch may wait for it.
func drivesDevice(r *evidence.Recording) (does bool, err error) {
	err = r.DB.Row(r.Ctx, `SELECT EXISTS (FROM span WHERE pid = ?
			AND (layer = 'device' OR layer = 'runtime' AND category IN ('launch', 'copy', 'set', 'graph', 'sync')))
		OR EXISTS (FROM memory WHERE pid = ? AND space <> 'host')`, []any{r.Thread.PID, r.Thread.PID}, &does)
	return does, err
}

// longElement is from where on (with probes) an elementwise operator between two fetches is no
// longer taken for one on a single element.
const longElement = 50_000

// ofAnElement says whether the operator that the span belongs to only chooses an element, or
// makes one of it (a comparison, a product). What is no operator is the interpreter's.
func ofAnElement(g *timeline.StepGraph, span int) bool {
	outermost := -1
	for p := span; p >= 0; p = g.Parent(p) {
		if g.Spans[p].Layer == "op" {
			outermost = p
		}
	}
	if outermost < 0 {
		return true
	}
	name := g.Spans[outermost].Name
	return slices.Contains(viewNames, name) || slices.Contains(pointwise, name) && evidence.Duration(g, outermost) <= longElement
}

// rowsOf are the segments of the fetches, and of what lies between two of them
// where that is only the choice of the next element, and what is made of it.
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
			if s.Span >= 0 && !ofAnElement(g, s.Span) {
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
