package rules

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
)

// Hotspot: the lines that most of the training thread's samples are in, on the
// CPU or off it. It says where to look and not what that would bring.
var Hotspot = evidence.Rule{
	Name: "hotspot", Title: "most of the time", Placed: true, Look: lookHotspot,
	Thresholds: []thresholds.Threshold{hotspotPercent},
}

var hotspotPercent = thresholds.Threshold{
	Name: "hotspot_percent", Default: 10,
	Why: "A line with more than this share of the samples is worth a look (DeepContext: a tenth).",
}

func lookHotspot(r *evidence.Recording) (found []evidence.Candidate, err error) {
	weights := map[evidence.Place]int64{}
	var all int64
	for _, s := range r.Samples {
		if s.TID != r.Thread.TID || r.At(s.From) == nil {
			continue
		}
		all += s.Weight()
		if s.Stack.Place.File != "" {
			weights[s.Stack.Place] += s.Weight()
		}
	}
	var places []evidence.Place
	for p, w := range weights {
		if 100*float64(w) >= r.Thresholds.Of(hotspotPercent)*float64(all) {
			places = append(places, p)
		}
	}
	slices.SortFunc(places, func(a, b evidence.Place) int {
		return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	for _, p := range places {
		share := 100 * float64(weights[p]) / float64(all)
		found = append(found, evidence.Candidate{
			Name: p.Function, Place: p,
			Evidence: r.SamplesThat(fmt.Sprintf("s.tid = %d", r.Thread.TID)),
			Advice: fmt.Sprintf("Look here first: %.0f %% of the time of the %s passes at this line and in the libraries that it calls.", share,
				r.Thread.Worker()),
		})
	}
	return found, nil
}
