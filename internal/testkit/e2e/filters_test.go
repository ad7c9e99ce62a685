package e2e

import (
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// What --probe and --exclude leave is recorded as without them, call by call, and the
// dataset says what was asked for.
func TestFiltersLeaveWhatTheyName(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		job := training(v, "mlp")
		whole := harness.Shared(t, harness.Unbudgeted, job...)
		whole.Lossless(t)
		names := "SELECT name, count(*) FROM span WHERE %s AND layer = 'op' %s GROUP BY ALL"
		for _, c := range []struct {
			name, probe, exclude, left string
		}{
			{"probe", "op,symbol=aten::*mm,aten::relu", "", "AND (name LIKE 'aten::%mm' OR name = 'aten::relu')"},
			{"exclude", "", "memory,category=backward,symbol=aten::*mm,aten::view", "AND name NOT LIKE 'aten::%mm' AND name <> 'aten::view'"},
		} {
			t.Run(c.name, func(t *testing.T) {
				r := harness.Shared(t, append(slices.Clone(harness.Unbudgeted), "--probe", c.probe, "--exclude", c.exclude), job...)
				r.Lossless(t)
				got := r.Counts(t, names, r.Region(t), "")
				harness.SameCounts(t, "operators", got, whole.Counts(t, names, whole.Region(t), c.left))
				if len(got) == 0 {
					t.Error("no operator is left")
				}
				if c.probe != "" {
					if n := r.Number(t, "SELECT count(*) FROM span WHERE layer <> 'op'"); n != 0 {
						t.Errorf("%d spans of other layers", n)
					}
				}
				if n := r.Number(t, "SELECT count(*) FROM memory"); n != 0 {
					t.Errorf("%d rows of memory", n)
				}
				said := r.Rows(t, "SELECT coalesce(probe_groups, ''), coalesce(exclude, '') FROM session")[0]
				if said[0] != c.probe || said[1] != c.exclude {
					t.Errorf("the session says %v", said)
				}
			})
		}
	})
}
