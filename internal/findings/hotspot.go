package findings

import (
	"cmp"
	"fmt"
	"slices"
)

// hotspot: the lines that most of the training thread's samples are in, on the
// CPU or off it. It says where to look and not what that would bring.
func hotspot(r *recording) (found []candidate) {
	weights := map[place]int64{}
	var all int64
	for _, s := range r.samples {
		if s.TID != r.thread.TID || r.at(s.From) == nil {
			continue
		}
		all += s.weight()
		if s.Stack.place.file != "" {
			weights[s.Stack.place] += s.weight()
		}
	}
	var places []place
	for p, w := range weights {
		if 100*float64(w) >= r.thresholds.HotspotPercent*float64(all) {
			places = append(places, p)
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
	})
	for _, p := range places {
		share := 100 * float64(weights[p]) / float64(all)
		found = append(found, candidate{
			rule: "hotspot", name: p.function, place: p,
			evidence: r.samplesSQL(fmt.Sprintf("s.tid = %d", r.thread.TID)),
			advice:   fmt.Sprintf("Look here first: %.0f %% of the training thread's time passes at this line and below it.", share),
		})
	}
	return found
}
