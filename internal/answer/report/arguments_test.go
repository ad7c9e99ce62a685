package report

import (
	"fmt"
	"strings"
	"testing"
)

// tuples are Python's, as JSON.
func tuples(text string) string {
	text = strings.NewReplacer("(", "[", ")", "]", "'", `"`, " ", "").Replace(text)
	return strings.ReplaceAll(text, ",]", "]")
}

// TestOperatorsByTheirArgumentsAreThoseOfTraceLens: calls and the time of their own kernels by
// name, sizes, types and strides; of those that it counts FLOPs of, the host's time, the
// kernels' of all that they call, and FLOPs and bytes, too.
func TestOperatorsByTheirArgumentsAreThoseOfTraceLens(t *testing.T) {
	db := imported(t, shared(t, bert+".json.gz"))
	built(t, db) // makes launch_owner
	const calls = "FROM span WHERE name = ? AND input_dims = ? AND input_types = ? AND input_strides = ?"
	key := func(row map[string]string) []any {
		return []any{row["name"], tuples(row["Input Dims"]), strings.ReplaceAll(tuples(row["Input type"]), "longint", "long int"),
			tuples(row["Input Strides"])}
	}
	type called struct {
		key       []any
		count, us float64
	}
	wanted := map[string]*called{} // calls with other values beside equal tensors are rows of their own there
	for _, row := range answers(t, "ops_unique_args.csv") {
		k := fmt.Sprint(key(row))
		if wanted[k] == nil {
			wanted[k] = &called{key: key(row)}
		}
		wanted[k].count += value(t, row["operation_count"])
		wanted[k].us += value(t, row["total_direct_kernel_time_sum"])
	}
	for _, want := range wanted {
		var count, ns float64
		err := db.Row(t.Context(), `WITH o AS (SELECT session_id, span_id `+calls+`),
			own AS (SELECT l.operator_id, d.duration_ns FROM span d JOIN launch_owner l USING (session_id, launch_id)
				WHERE d.layer = 'device' AND d.category IN ('kernel', 'copy', 'set') AND l.operator_id IN (SELECT span_id FROM o))
			SELECT count(DISTINCT operator_id)::DOUBLE, sum(duration_ns)::DOUBLE FROM own`, want.key, &count, &ns)
		if err != nil {
			t.Fatal(err)
		}
		if count != want.count || !near(ns/1e3, want.us, 1e-2) {
			t.Errorf("%v: %g calls, %g µs; want %g, %g", want.key, count, ns/1e3, want.count, want.us)
		}
	}
	if len(wanted) < 15 {
		t.Errorf("%d lists of arguments", len(wanted))
	}
	for _, row := range answers(t, "unified_perf_summary.csv") {
		if row["has_perf_model"] != "True" || row["op category"] != "GEMM" && row["op category"] != "SDPA_fwd" {
			continue
		}
		var count int64
		var host, device, flops, moved float64
		err := db.Row(t.Context(), `WITH RECURSIVE o AS (SELECT session_id, span_id, duration_ns, flops, bytes_moved `+calls+`),
			inside AS (SELECT session_id, span_id FROM o UNION ALL SELECT s.session_id, s.span_id FROM span s
			JOIN inside i ON s.session_id = i.session_id AND s.parent_id = i.span_id)
			SELECT count(*), sum(duration_ns)::DOUBLE, any_value(flops)::DOUBLE, any_value(bytes_moved)::DOUBLE,
				(SELECT sum(d.duration_ns)::DOUBLE FROM span d JOIN inside i ON d.session_id = i.session_id AND d.launch_id = i.span_id) FROM o`,
			key(row), &count, &host, &flops, &moved, &device)
		if err != nil {
			t.Fatal(err)
		}
		if float64(count) != value(t, row["operation_count"]) || !near(host/1e3, value(t, row["total_duration_us"]), 1e-2) ||
			!near(device/1e3, value(t, row["Kernel Time (µs)_sum"]), 1e-2) ||
			!near(flops/1e9/value(t, row["GFLOPS"]), 1, 1e-6) || !near(moved/(1<<20)/value(t, row["Data Moved (MB)"]), 1, 1e-6) {
			t.Errorf("%v: %d calls, %g µs, %g µs on the device, %g FLOP, %g bytes; want %s, %s, %s, %s, %s", key(row), count, host/1e3, device/1e3,
				flops, moved,
				row["operation_count"], row["total_duration_us"], row["Kernel Time (µs)_sum"], row["GFLOPS"], row["Data Moved (MB)"])
		}
	}
}
