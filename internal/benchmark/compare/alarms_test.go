package compare

import (
	"math/rand/v2"
	"testing"
)

// TestRunsOfTheSameJobRarelyDiffer: of pairs of the same job, how many are called better or worse, and how many of a job
// that takes a fifth longer are not.
func TestRunsOfTheSameJobRarelyDiffer(t *testing.T) {
	const pairs = 2000
	random := rand.New(rand.NewPCG(1, 2))
	drawn := func(n int, mean, spread float64) (rows []Row) {
		for range n {
			rows = append(rows, runs("step_time", mean*(1+spread*random.NormFloat64()))...)
		}
		return rows
	}
	for _, c := range []struct {
		runs          int
		spread        float64
		alarms, found float64 // at most, at least, of all pairs
	}{
		{3, 0.005, 0.01, 0.99}, {3, 0.02, 0.05, 0.95}, {5, 0.02, 0.05, 0.99}, {5, 0.05, 0.06, 0.9}, {5, 0.1, 0.06, 0.5}, {10, 0.1, 0.06, 0.9},
	} {
		alarms, found := 0, 0
		for range pairs {
			if v := Between(drawn(c.runs, 100, c.spread), drawn(c.runs, 100, c.spread)).Verdict; v != Within {
				alarms++
			}
			if v := Between(drawn(c.runs, 120, c.spread), drawn(c.runs, 100, c.spread)).Verdict; v == Worse {
				found++
			}
		}
		t.Logf("%d runs a side, spread %.1f %%: false alarms in %.1f %%, 20 %% longer seen in %.1f %%", c.runs, 100*c.spread,
			100*float64(alarms)/pairs, 100*float64(found)/pairs)
		if float64(alarms) > c.alarms*pairs || float64(found) < c.found*pairs {
			t.Errorf("%d runs a side, spread %.1f %%: %d false alarms and %d found of %d", c.runs, 100*c.spread, alarms, found, pairs)
		}
	}
}
