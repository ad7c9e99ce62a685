package e2e

import (
	"fmt"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// Two threads that train at once number their nodes alike. Each node's edge comes
// from the operator of its own thread.
func TestTheEdgesOfTwoTrainingThreadsAreNotMixedUp(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		r := harness.Record(t, harness.Unbudgeted, v.Job("twotrainers.py", "--steps", "50")...)
		want := map[string]string{"MulBackward0": "aten::mul", "DivBackward0": "aten::div"}
		edges := map[string]int64{}
		for _, row := range r.Rows(t, `SELECT b.name, a.name, count(*) FROM flow f
			JOIN span a ON f.from_span_id = a.span_id JOIN span b ON f.to_span_id = b.span_id
			WHERE f.kind = 'forward_backward' GROUP BY ALL`) {
			node, operator, n := fmt.Sprint(row[0]), fmt.Sprint(row[1]), harness.Integer(t, row[2])
			if want[node] == "" {
				continue
			}
			if operator != want[node] {
				t.Errorf("%d of %s come from %s", n, node, operator)
			}
			edges[node] += n
		}
		harness.SameCounts(t, "edges", edges, r.Truth.Nodes)
	})
}
