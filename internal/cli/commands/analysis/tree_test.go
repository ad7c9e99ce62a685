package analysis

import (
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testcommand"
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
