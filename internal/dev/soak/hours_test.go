package main

import (
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dev/agentrun"
)

func TestAWorkerThatGrowsOrHasMoreThanPromisedFails(t *testing.T) {
	looks := func(rss func(i int) float64, step int64) (all looks) {
		for i := range 100 {
			l := look{reading: reading{"worker_rss_mib": rss(i)}, at: time.Unix(int64(10*i), 0), state: agentrun.Watching, steps: int64(i) * step,
				cpu: 0.05 * float64(i)}
			if i%20 == 19 { // windows take more, and are not judged
				l.state, l.reading["worker_rss_mib"] = "window", 400
			}
			all = append(all, l)
		}
		return all
	}
	for name, c := range map[string]struct {
		rss  func(int) float64
		step int64
		want bool
	}{
		"the same":                {func(int) float64 { return 150 }, 100, true},
		"without a step":          {func(int) float64 { return 150 }, 0, false},
		"more than promised":      {func(int) float64 { return mostWatching + 1 }, 100, false},
		"more for a moment":       {func(i int) float64 { return 150 + float64(i/97)*100 }, 100, false},
		"grown, within the bound": {func(i int) float64 { return 20 + float64(i)*1.6 }, 100, false},
	} {
		if err := looks(c.rss, c.step).judge(); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
