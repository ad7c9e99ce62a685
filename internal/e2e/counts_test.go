package e2e

import "testing"

// unbudgeted records every call.
var unbudgeted = []string{"--budget", "off"}

// training are the jobs whose operators are counted, a few steps of each.
var training = map[string][]string{
	"mlp":         {"mlp.py", "--steps", "40"},
	"transformer": {"transformer.py", "--steps", "6", "--depth", "2"},
}

func (v torch) training(name string) []string {
	return v.job(training[name][0], training[name][1:]...)
}

// No operator is excepted: on these jobs every call of the dispatcher comes
// through at::_ops::X::call (testdata/jobs/README.md says what would not).
func TestOperatorCountsEqualTorchProfiler(t *testing.T) {
	besideEachTorch(t, counting, func(t *testing.T, v torch) {
		for name := range training {
			t.Run(name, func(t *testing.T) {
				r := shared(t, unbudgeted, v.training(name)...)
				r.lossless(t)
				got := r.counts(t, "SELECT name, count(*) FROM span WHERE layer = 'op' AND %s GROUP BY ALL", r.region(t))
				want := profile[profiled](t, v.training(name)...).Operators
				sameCounts(t, "operators", got, want)
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
