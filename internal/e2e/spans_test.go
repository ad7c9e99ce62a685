package e2e

import (
	"fmt"
	"slices"
	"testing"
)

func TestEveryOperatorEndsAtAnExitOrThrew(t *testing.T) {
	eachTorch(t, func(t *testing.T, v torch) {
		for name := range training {
			r := shared(t, unbudgeted, v.training(name)...)
			r.lossless(t)
			ends := r.rows(t, `SELECT name, count(*), count(*) FILTER (status = 'ok' AND end_method = 'exit_site'),
				count(*) FILTER (status = 'threw') FROM span WHERE layer = 'op' GROUP BY ALL`)
			for _, row := range ends {
				entries, exits, threw := integer(t, row[1]), integer(t, row[2]), integer(t, row[3])
				if entries != exits+threw {
					t.Errorf("%s: %s: %d entries, %d exits, %d threw", name, row[0], entries, exits, threw)
				}
			}
			if len(ends) < 30 {
				t.Errorf("%s: only %d operators", name, len(ends))
			}
			hits := r.number(t, "SELECT sum(hits) FROM probe WHERE layer = 'op'")
			spans := r.number(t, "SELECT count(*) FROM span WHERE layer = 'op'")
			if hits != spans {
				t.Errorf("%s: the probes of operators were hit %d times and made %d spans", name, hits, spans)
			}
		}
	})
}

// What the probes add to a span, and the profiler to its own. A probed operator
// costs the design's machine 2.2 µs, an allocator event 0.9 µs, most of it
// seen by the spans around it; the profiler takes about 1 µs an operator. Both
// are several times that on a machine that does other work, whose caches are
// shared: the bound is three times these, and a fifth of the time itself for
// what a virtual machine's clock speed varies between two runs.
const (
	spanCostNS     = 3 * 2200
	eventCostNS    = 3 * 900
	profilerCostNS = 3 * 1000
	runVariation   = 0.2
)

// enough is how many calls make a median.
const enough = 40

func TestDurationsAgreeWithTorchProfiler(t *testing.T) {
	eachTorch(t, func(t *testing.T, v torch) {
		r := shared(t, unbudgeted, v.training("mlp")...)
		want := profile[profiled](t, v.training("mlp")...).MedianNS
		rows := r.rows(t, `
			WITH RECURSIVE inside AS (
				SELECT span_id AS outermost, span_id FROM span WHERE layer = 'op' AND %[1]s
				UNION ALL
				SELECT outermost, s.span_id FROM span s JOIN inside i ON s.parent_id = i.span_id
			), spans AS (SELECT outermost AS span_id, count(*) AS spans FROM inside GROUP BY ALL),
			events AS (SELECT outermost AS span_id, count(*) AS events FROM inside JOIN memory USING (span_id) GROUP BY ALL)
			SELECT name, count(*), CAST(median(duration_ns) AS BIGINT), CAST(median(spans) AS BIGINT),
				CAST(median(coalesce(events, 0)) AS BIGINT)
			FROM span JOIN spans USING (span_id) LEFT JOIN events USING (span_id) WHERE %[1]s GROUP BY ALL`, r.region(t))
		compared := 0
		for _, row := range rows {
			n, got, spans, events := integer(t, row[1]), integer(t, row[2]), integer(t, row[3]), integer(t, row[4])
			profiled, ok := want[fmt.Sprint(row[0])]
			if !ok || n < enough {
				continue
			}
			compared++
			variation := int64(runVariation * float64(max(profiled, got)))
			low, high := profiled-spans*profilerCostNS-variation, profiled+spans*spanCostNS+events*eventCostNS+variation
			if got < low || got > high {
				t.Errorf("%s: median %d ns, the profiler's %d ns: want %d to %d ns (%d spans and %d events in it)",
					row[0], got, profiled, low, high, spans, events)
			}
			if testing.Verbose() {
				t.Logf("%-28s %7d calls  %9d ns  profiler %9d ns  %d spans %d events", row[0], n, got, profiled, spans, events)
			}
		}
		if compared < 20 {
			t.Errorf("only %d operators were compared", compared)
		}
	})
}

func TestSpansNestByTimeOnTheirThread(t *testing.T) {
	eachTorch(t, func(t *testing.T, v torch) {
		r := shared(t, unbudgeted, v.training("transformer")...)
		torn := r.rows(t, `SELECT c.name, p.name, c.ts_ns - p.ts_ns, c.ts_ns + c.duration_ns - p.ts_ns - p.duration_ns, c.tid = p.tid
			FROM span c JOIN span p ON c.parent_id = p.span_id
			WHERE c.layer IN ('op', 'autograd') AND (c.ts_ns < p.ts_ns OR c.ts_ns + c.duration_ns > p.ts_ns + p.duration_ns OR c.tid <> p.tid)`)
		for _, row := range torn[:min(len(torn), 5)] {
			t.Errorf("%s is not inside its parent %s: begins %d ns after it, ends %d ns after it, same thread %v", row...)
		}
		orphans := r.number(t, "SELECT count(*) FROM span c ANTI JOIN span p ON c.parent_id = p.span_id WHERE c.parent_id IS NOT NULL")
		if orphans > 0 {
			t.Errorf("%d spans have a parent that is not in the dataset", orphans)
		}
		ids := r.rows(t, "SELECT span_id FROM span GROUP BY ALL HAVING count(*) > 1 LIMIT 3")
		if len(ids) > 0 {
			t.Errorf("span ids that occur twice: %v", slices.Concat(ids...))
		}
	})
}
