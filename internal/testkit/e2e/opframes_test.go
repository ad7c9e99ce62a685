package e2e

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// TestOperatorFramesAreThoseOfTheSpansAround: what probes found open when a
// sample was taken, and what its stack says, come by two ways.
func TestOperatorFramesAreThoseOfTheSpansAround(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		r := harness.RecordReady(t, []string{"--frequency", "499", "--budget", "off"}, v.Job("transformer.py", "--depth", "2", "--width", "64",
			"--cpu-seconds", "4")...)
		r.Lossless(t)
		// In an operator's entry itself the probe has not been passed, or its end has.
		rows := r.Rows(t, `WITH s AS (SELECT span.name, [f.function FOR f IN frames IF f.kind = 'op'] AS ops, stack.status,
				[f.function FOR f IN frames IF f.kind = 'native'][1] AS leaf
			FROM sample JOIN stack USING (stack_id) JOIN span ON span.span_id = sample.span_id AND span.tid = sample.tid
			WHERE state = 'on_cpu' AND layer = 'op'),
			compared AS (SELECT *, CASE WHEN starts_with(leaf, 'at::_ops::') AND ends_with(leaf, '::call') AND name = ops[2] THEN ops[2]
			ELSE ops[1] END AS op FROM s)
			SELECT count(*), count(*) FILTER (name = op), count(*) FILTER (status <> 'complete' AND op IS NULL),
				list(name || ' is ' || coalesce(op, 'none') || ' at ' || coalesce(leaf, 'none')) FILTER (name IS DISTINCT FROM op)[1:20] FROM compared`)
		all, same, cut := harness.Integer(t, rows[0][0]), harness.Integer(t, rows[0][1]), harness.Integer(t, rows[0][2])
		t.Logf("%d samples in a span of an operator, %d in an operator's frame of that name, %d cut before it", all, same, cut)
		if all < 300 || float64(same) < 0.99*float64(all-cut) {
			t.Errorf("%d samples in a span of an operator, %d in its frame, %d cut before it: %v", all, same, cut, rows[0][3])
		}
		if n := r.Number(t, `SELECT count(*) FROM stack, range(1, len(frames)) AS i(i)
			WHERE starts_with(frames[i].function, 'at::_ops::') AND ends_with(frames[i].function, '::call')
			AND frames[i + 1].kind <> 'op'`); n != 0 {
			t.Errorf("%d entries of operators have no operator's frame outside of them", n)
		}
		if n := r.Number(t, `SELECT count(*) FROM stack WHERE contains(folded, ';aten::addmm;at::_ops::addmm::call (')`); n == 0 {
			t.Error("no folded stack has aten::addmm around its entry")
		}
		if n := r.Number(t, `SELECT count(*) FROM stack, unnest(frames) AS u(f) WHERE f.kind = 'op' AND
			(NOT starts_with(f.function, 'aten::') OR f.file IS NOT NULL OR f.line IS NOT NULL OR f.module IS NOT NULL
			OR f."offset" IS NOT NULL)`); n != 0 {
			t.Errorf("%d operators' frames have a place of their own", n)
		}
	})
}
