package findings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/graph"
	"github.com/ebpfprof/ebpfprof/internal/timeline"
)

// hostBound: operators take the host much longer than what they launch takes the
// device, which is idle meanwhile. They could take as long as the device.
func hostBound(r *recording) (found []candidate) {
	if !r.onDevice() || r.idlePercent() < r.thresholds.HostIdlePercent {
		return nil
	}
	type total struct {
		spans        accused
		host, device int64
	}
	byName := map[string]*total{}
	for g, spans := range r.outermost(func(s timeline.Span) bool { return s.Layer == "op" }) {
		for _, i := range spans {
			device := deviceUnder(g, i)
			if device == 0 {
				continue
			}
			name := g.Spans[i].Name
			if byName[name] == nil {
				byName[name] = &total{spans: accused{}}
			}
			t := byName[name]
			t.spans[g] = append(t.spans[g], i)
			t.host, t.device = t.host+duration(g, i), t.device+device
		}
	}
	all := r.meanNS() * float64(len(r.graphs))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		t := byName[name]
		ratio := float64(t.host) / float64(t.device)
		if ratio < r.thresholds.HostRatio || 100*float64(t.host) < r.thresholds.HostPercent*all {
			continue
		}
		found = append(found, candidate{
			rule: "host_bound", name: name, place: r.placeOf(t.spans),
			replace: func(g *timeline.StepGraph, times graph.Times) {
				for _, i := range t.spans[g] {
					for _, n := range g.Under(i) {
						if !g.Segments[n].Device {
							times.Own[n] *= 1 / ratio
						}
					}
				}
			},
			evidence: fmt.Sprintf("SELECT o.name, count(DISTINCT o.span_id) AS calls, sum(d.duration_ns) / 1e6 AS device_ms\n"+
				"FROM span o JOIN span l ON l.pid = o.pid AND l.parent_id = o.span_id JOIN span d ON d.launch_id = l.span_id\n"+
				"WHERE o.name = %s AND o.pid = %d AND o.ts_ns BETWEEN %d AND %d GROUP BY 1\n"+
				"UNION ALL SELECT name, count(*), sum(duration_ns) / 1e6 FROM span WHERE name = %s AND %s GROUP BY 1", quoted([]string{name}), r.thread.PID,
				r.graphs[0].Step.Begin, r.graphs[len(r.graphs)-1].Step.Until(), quoted([]string{name}), r.where()),
			advice: fmt.Sprintf("%s takes the host %.1f times as long as what it launches takes the device, which is idle %.0f %% of the step. "+
				"Launch more at once: larger batches, CUDA or HIP graphs, torch.compile.", name, ratio, r.idlePercent()),
		})
	}
	slices.SortStableFunc(found, func(a, b candidate) int {
		return cmp.Compare(byName[b.name].host, byName[a.name].host)
	})
	return found
}

// deviceUnder is how long what the span, or calls inside it, launched took devices.
func deviceUnder(g *timeline.StepGraph, span int) (ns int64) {
	for _, n := range g.Under(span) {
		if s := g.Segments[n]; s.Device {
			ns += s.To - s.From
		}
	}
	return ns
}

// idlePercent is how much of the steps no device works in.
func (r *recording) idlePercent() float64 {
	var busy, all float64
	for i, g := range r.graphs {
		var work []interval
		for _, s := range g.Segments {
			if s.Device {
				work = append(work, interval{s.From, s.To})
			}
		}
		slices.SortFunc(work, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
		until := int64(0)
		for _, w := range work {
			if w.to > until {
				busy += float64(w.to - max(w.from, until))
				until = w.to
			}
		}
		all += r.periods[i]
	}
	return 100 * (1 - busy/max(all, 1))
}
