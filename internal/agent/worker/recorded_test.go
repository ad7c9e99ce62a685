package worker

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/decode"
)

// What sessions have seen adds up; their probes and rings are of the one that runs.
func TestSessionsAddUp(t *testing.T) {
	var seen recorded
	for range 2 { // sessions
		seen.begin(func() tracer.Stats {
			stats := tracer.Stats{Lost: map[string]uint64{"ring_full": 3}}
			stats.Spans, stats.Samples = 100, 20
			stats.Probes, stats.Pending = tracer.ProbeUse{Attached: 40, Hits: 1000}, decode.Pending{Calls: 4096, Samples: 512}
			return stats
		})
		if sum := seen.sum(); sum.Rows["span"]%100 != 0 || sum.Hits%1000 != 0 || sum.Probes != 40 || sum.Pending["calls"] != 4096 {
			t.Error(sum)
		}
		seen.end()
	}
	if sum := seen.sum(); sum.Hits != 2000 || sum.Probes != 0 || sum.Pending["samples"] != 0 {
		t.Errorf("between two sessions: %+v", sum)
	}
}
