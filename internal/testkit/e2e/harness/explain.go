package harness

import (
	"context"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset/query"
)

// explain tells of a test that failed what the tracer said, and what its dataset says of
// the probes: a failure on another machine can't be looked at again.
func (c *Command) explain(t *testing.T, r *Recording) {
	if !t.Failed() {
		return
	}
	t.Logf("%s", c.Transcript())
	db, err := query.Open(r.Dataset)
	if err != nil {
		t.Log(err)
		return
	}
	defer db.Close()
	for _, question := range []string{
		`SELECT kind, source, count, detail FROM warning ORDER BY ts_ns LIMIT 40`,
		`SELECT probe_group, pid, (begin_ns - from_ns) / 1e6 AS before_ms, (end_ns - begin_ns) / 1e6 AS ms, (to_ns - end_ns) / 1e6 AS behind_ms,
			phase, unit, recorded, represented FROM slice ORDER BY slice_id LIMIT 40`,
		`SELECT library, count(*) AS probes, count(*) FILTER (attached) AS attached, sum(hits) AS hits, sum(lost) AS lost,
			any_value(reason) AS a_reason FROM probe GROUP BY ALL ORDER BY library LIMIT 20`,
		`SELECT layer, runtime, count(*) AS spans FROM span GROUP BY ALL ORDER BY ALL LIMIT 20`,
	} {
		t.Logf("%s:", question)
		result, err := db.Run(context.Background(), question)
		if err != nil {
			t.Log(err)
			continue
		}
		for _, row := range result.Rows {
			t.Logf("  %v", row)
		}
	}
}
