package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/model/graph"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// HostBound: operators take the host much longer than what they launch takes the
// device, which is idle meanwhile. They could take as long as the device.
var HostBound = evidence.Rule{
	Name: "host_bound", Title: "the host takes longer than the device", Placed: true, Look: lookHostBound,
	Thresholds: []thresholds.Threshold{hostRatio, hostPercent, hostIdlePercent},
}

var (
	hostRatio = thresholds.Threshold{
		Name: "host_ratio", Default: 1.5,
		Why: "Operators that take the host this many times what they take the device (DeepContext: 1.5), this much of " +
			"a step, while devices are idle for this much of it.",
	}
	hostPercent     = thresholds.Threshold{Name: "host_percent", Default: 10}
	hostIdlePercent = thresholds.Threshold{Name: "host_idle_percent", Default: 20}
)

func lookHostBound(r *evidence.Recording) (found []evidence.Candidate, err error) {
	if !onDevice(r) || idlePercent(r) < r.Thresholds.Of(hostIdlePercent) {
		return nil, nil
	}
	type total struct {
		spans        evidence.Accused
		host, device int64
	}
	byName := map[string]*total{}
	for g, spans := range r.Outermost(func(s timeline.Span) bool { return s.Layer == "op" }) {
		for _, i := range spans {
			device := deviceUnder(g, i)
			if device == 0 {
				continue
			}
			name := g.Spans[i].Name
			if byName[name] == nil {
				byName[name] = &total{spans: evidence.Accused{}}
			}
			t := byName[name]
			t.spans[g] = append(t.spans[g], i)
			t.host, t.device = t.host+evidence.Duration(g, i), t.device+device
		}
	}
	all := r.MeanNS() * float64(len(r.Graphs))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		t := byName[name]
		ratio := float64(t.host) / float64(t.device)
		if ratio < r.Thresholds.Of(hostRatio) || 100*float64(t.host) < r.Thresholds.Of(hostPercent)*all {
			continue
		}
		found = append(found, evidence.Candidate{
			Name: name, Place: r.PlaceOf(t.spans),
			Replace: func(g *timeline.StepGraph, times graph.Times) {
				for _, i := range t.spans[g] {
					for _, n := range g.Under(i) {
						if !g.Segments[n].Device {
							times.Own[n] *= 1 / ratio
						}
					}
				}
			},
			Evidence: evidence.Query(fmt.Sprintf("SELECT o.name, count(DISTINCT o.span_id) AS calls, sum(d.duration_ns) / 1e6 AS device_ms\n"+
				"FROM span o JOIN span l ON l.pid = o.pid AND l.parent_id = o.span_id JOIN span d ON d.launch_id = l.span_id\n"+
				"WHERE o.name = %s AND o.pid = %d AND o.ts_ns BETWEEN %d AND %d GROUP BY 1\n"+
				"UNION ALL SELECT name, count(*), sum(duration_ns) / 1e6 FROM span WHERE name = %s AND %s GROUP BY 1",
				evidence.Quoted([]string{name}), r.Thread.PID,
				r.Graphs[0].Step.Begin, r.Graphs[len(r.Graphs)-1].Step.Until(), evidence.Quoted([]string{name}), r.Where())).
				Rows("span", "name = "+evidence.Quoted([]string{name})+" AND "+r.Where()),
			Advice: fmt.Sprintf("%s takes the host %.1f times as long as what it launches takes the device, which is idle %.0f %% of the step. "+
				"Launch more at once: larger batches, CUDA or HIP graphs, torch.compile.", name, ratio, idlePercent(r)),
		})
	}
	slices.SortStableFunc(found, func(a, b evidence.Candidate) int {
		return cmp.Compare(byName[b.Name].host, byName[a.Name].host)
	})
	return found, nil
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
func idlePercent(r *evidence.Recording) float64 {
	var busy, all float64
	for i, g := range r.Graphs {
		var work []evidence.Interval
		for _, s := range g.Segments {
			if s.Device {
				work = append(work, evidence.Interval{From: s.From, To: s.To})
			}
		}
		slices.SortFunc(work, func(a, b evidence.Interval) int { return cmp.Compare(a.From, b.From) })
		until := int64(0)
		for _, w := range work {
			if w.To > until {
				busy += float64(w.To - max(w.From, until))
				until = w.To
			}
		}
		all += r.Periods[i]
	}
	return 100 * (1 - busy/max(all, 1))
}
