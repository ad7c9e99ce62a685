package e2e

import (
	"slices"
	"testing"
)

// What --probe and --exclude leave is recorded as without them, call by call, and the
// dataset says what was asked for.
func TestFiltersLeaveWhatTheyName(t *testing.T) {
	besideEachTorch(t, counting, func(t *testing.T, v torch) {
		job := v.training("mlp")
		whole := shared(t, unbudgeted, job...)
		whole.lossless(t)
		names := "SELECT name, count(*) FROM span WHERE %s AND layer = 'op' %s GROUP BY ALL"
		for _, c := range []struct {
			name, probe, exclude, left string
		}{
			{"probe", "op,symbol=aten::*mm,aten::relu", "", "AND (name LIKE 'aten::%mm' OR name = 'aten::relu')"},
			{"exclude", "", "memory,category=backward,symbol=aten::*mm,aten::view", "AND name NOT LIKE 'aten::%mm' AND name <> 'aten::view'"},
		} {
			t.Run(c.name, func(t *testing.T) {
				r := shared(t, append(slices.Clone(unbudgeted), "--probe", c.probe, "--exclude", c.exclude), job...)
				r.lossless(t)
				got := r.counts(t, names, r.region(t), "")
				sameCounts(t, "operators", got, whole.counts(t, names, whole.region(t), c.left))
				if len(got) == 0 {
					t.Error("no operator is left")
				}
				if c.probe != "" {
					if n := r.number(t, "SELECT count(*) FROM span WHERE layer <> 'op'"); n != 0 {
						t.Errorf("%d spans of other layers", n)
					}
				}
				if n := r.number(t, "SELECT count(*) FROM memory"); n != 0 {
					t.Errorf("%d rows of memory", n)
				}
				said := r.rows(t, "SELECT coalesce(probe_groups, ''), coalesce(exclude, '') FROM session")[0]
				if said[0] != c.probe || said[1] != c.exclude {
					t.Errorf("the session says %v", said)
				}
			})
		}
	})
}
