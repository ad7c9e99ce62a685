package e2e

import "testing"

func TestThrownOperatorsAreMarked(t *testing.T) {
	besideEachTorch(t, counting, func(t *testing.T, v torch) {
		job := v.job("throws.py", "--count", "25")
		r := mustRecord(t, unbudgeted, job...)
		r.lossless(t)
		threw := r.counts(t, "SELECT name, count(*) FROM span WHERE layer = 'op' AND status = 'threw' AND %s GROUP BY ALL", r.region(t))
		sameCounts(t, "threw", threw, r.truth.Threw)

		names := map[string]string{"Engine::evaluate_function": "node", "Engine::execute": "backward", "ProcessGroupGloo::broadcast": "gloo::broadcast", "ProcessGroupGloo::reduce": "gloo::reduce"}
		others := r.counts(t, `SELECT CASE WHEN layer = 'collective' THEN name ELSE category END, count(*) FROM span
			WHERE layer IN ('autograd', 'collective') AND status = 'threw' AND %s GROUP BY ALL`, r.region(t))
		want := map[string]int64{}
		for function, n := range r.truth.ThrewOther {
			want[names[function]] += n
		}
		sameCounts(t, "threw", others, want)

		tanh := r.counts(t, "SELECT name, count(*) FROM span WHERE name = 'aten::tanh' AND status = 'ok' AND %s GROUP BY ALL", r.region(t))
		sameCounts(t, "succeeded", tanh, r.truth.Succeeded)
		if bare := runJob(t, job...); bare.SHA256 != r.truth.SHA256 {
			t.Errorf("the job's results are %s with the tracer and %s without", r.truth.SHA256, bare.SHA256)
		}
	})
}
