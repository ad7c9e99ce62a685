package e2e

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

func TestThrownOperatorsAreMarked(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		job := v.Job("throws.py", "--count", "25")
		r := harness.Record(t, harness.Unbudgeted, job...)
		r.Lossless(t)
		threw := r.Counts(t, "SELECT name, count(*) FROM span WHERE layer = 'op' AND status = 'threw' AND %s GROUP BY ALL", r.Region(t))
		harness.SameCounts(t, "threw", threw, r.Truth.Threw)

		names := map[string]string{"Engine::evaluate_function": "node", "Engine::execute": "backward",
			"ProcessGroupGloo::broadcast": "gloo::broadcast", "ProcessGroupGloo::reduce": "gloo::reduce"}
		others := r.Counts(t, `SELECT CASE WHEN layer = 'collective' THEN name ELSE category END, count(*) FROM span
			WHERE layer IN ('autograd', 'collective') AND status = 'threw' AND %s GROUP BY ALL`, r.Region(t))
		want := map[string]int64{}
		for function, n := range r.Truth.ThrewOther {
			want[names[function]] += n
		}
		harness.SameCounts(t, "threw", others, want)

		tanh := r.Counts(t, "SELECT name, count(*) FROM span WHERE name = 'aten::tanh' AND status = 'ok' AND %s GROUP BY ALL", r.Region(t))
		harness.SameCounts(t, "succeeded", tanh, r.Truth.Succeeded)
		if bare := harness.RunJob(t, job...); bare.SHA256 != r.Truth.SHA256 {
			t.Errorf("the job's results are %s with the tracer and %s without", r.Truth.SHA256, bare.SHA256)
		}
	})
}
