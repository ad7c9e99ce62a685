package analysis

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testcommand"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// TestATreeOfSlicesSaysThatItEstimates, but not of samples, nor where each row is one call.
func TestATreeOfSlicesSaysThatItEstimates(t *testing.T) {
	for _, weight := range []float64{1, 4} {
		j := scripted.New()
		j.Weight = weight
		for range 5 {
			j.Sample("on_cpu", 1_000_000, scripted.Python("main", "/home/me/train.py", 3))
			j.Op("aten::mm", 1_000_000)
		}
		dir := scripted.Write(t, j)
		for metric, may := range map[string]bool{"host_ns": true, "cpu_ns": false} {
			out, _, _, err := testcommand.Run(TreeCommand(), dir, "--metric", metric)
			if said, want := strings.Contains(out, "are estimates (query --example estimates"), may && weight > 1; err != nil || said != want {
				t.Errorf("%s of rows of weight %g says that it estimates: %v, %v\n%s", metric, weight, said, err, out)
			}
		}
	}
}

// TestATreeOfSlicesFitsIntoTheClock: slices that saw six times their share add up to no more time than samples show.
func TestATreeOfSlicesFitsIntoTheClock(t *testing.T) {
	j := scripted.New()
	began := j.Now
	for range 5 {
		j.Slice(4, 24, func() {
			for range 40 {
				at := j.Now
				j.Sample("on_cpu", 1_000_000, event.Frame{Kind: "op", Function: "aten::mm"}, scripted.Python("main", "/home/me/train.py", 3))
				j.Now = at
				j.Op("aten::linear", 10_000, func() { j.Op("aten::mm", 980_000) })
			}
		})
	}
	out, _, _, err := testcommand.Run(TreeCommand(), scripted.Write(t, j), "--metric", "host_ns", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var nodes []struct{ Inclusive float64 }
	if err := json.Unmarshal([]byte(out), &nodes); err != nil || len(nodes) == 0 {
		t.Fatalf("%v: %s", err, out)
	}
	if wall := float64(j.Now - began); nodes[0].Inclusive > wall || nodes[0].Inclusive < 0.9*wall {
		t.Errorf("%g ns in a recording of %g", nodes[0].Inclusive, wall)
	}
}
