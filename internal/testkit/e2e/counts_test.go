package e2e

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// training are the jobs whose operators are counted, a few steps of each.
var trainingJobs = map[string][]string{
	"mlp":         {"mlp.py", "--steps", "40"},
	"transformer": {"transformer.py", "--steps", "6", "--depth", "2"},
}

func training(v harness.Torch, name string) []string {
	return v.Job(trainingJobs[name][0], trainingJobs[name][1:]...)
}

// No operator is excepted: on these jobs every call of the dispatcher comes
// through at::_ops::X::call (testdata/jobs/README.md says what would not).
func TestOperatorCountsEqualTorchProfiler(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		for name := range trainingJobs {
			t.Run(name, func(t *testing.T) {
				r := harness.Shared(t, harness.Unbudgeted, training(v, name)...)
				r.Lossless(t)
				got := r.Counts(t, "SELECT name, count(*) FROM span WHERE layer = 'op' AND %s GROUP BY ALL", r.Region(t))
				want := harness.Profile[harness.Profiled](t, training(v, name)...).Operators
				harness.SameCounts(t, "operators", got, want)
				t.Logf("%d operators, %d calls", len(got), sum(got))
			})
		}
	})
}

func sum(counts map[string]int64) (total int64) {
	for _, n := range counts {
		total += n
	}
	return total
}
