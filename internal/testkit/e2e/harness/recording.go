package harness

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset/query"
)

// Recording is a dataset and the truth of the job that it is of. Where it is of a job
// that was attached to, the caller has its truth.
type Recording struct {
	Dataset string
	Truth   Truth
	tracer  *Command // what made it, if that is kept
	// Summary is what `ebpfprof run --json` printed.
	Summary struct {
		Lost        map[string]int64 `json:"lost"`
		PeakLive    int64            `json:"peak_live_bytes"`
		JobExitCode int              `json:"job_exit_code"`
		InSlices    bool             `json:"in_slices"`
		Stacks      struct {
			Memoised struct{ Found, Walked, Unfit, Verified, Mismatched int64 }
		}
	}
}

// summarize reads what `ebpfprof run --json` printed behind the job's output.
func (r *Recording) summarize(c *Command) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.Index(c.out, "{")
	if at < 0 {
		return fmt.Errorf("%s printed no summary", c)
	}
	return json.Unmarshal([]byte(strings.Join(c.out[at:], "\n")), &r.Summary)
}

// Rows runs one SELECT on the dataset; it is a format of args.
func (r *Recording) Rows(t *testing.T, sql string, args ...any) [][]any {
	t.Helper()
	db, err := query.Open(r.Dataset)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if w := db.Warnings(); len(w) > 0 {
		t.Errorf("files of the dataset were left out: %s", w)
	}
	sql = fmt.Sprintf(sql, args...)
	result, err := db.Run(t.Context(), sql)
	if err != nil {
		t.Fatalf("%v: %s", err, sql)
	}
	return result.Rows
}

// Counts runs a SELECT of a name and a number.
func (r *Recording) Counts(t *testing.T, sql string, args ...any) map[string]int64 {
	t.Helper()
	counts := map[string]int64{}
	for _, row := range r.Rows(t, sql, args...) {
		counts[fmt.Sprint(row[0])] = Integer(t, row[1])
	}
	return counts
}

// Number runs a SELECT of one number.
func (r *Recording) Number(t *testing.T, sql string, args ...any) int64 {
	t.Helper()
	rows := r.Rows(t, sql, args...)
	if len(rows) != 1 || len(rows[0]) != 1 {
		t.Fatalf("%s: %d rows, want one number", sql, len(rows))
	}
	return Integer(t, rows[0][0])
}

// Integer is a value of a SELECT; NULL is 0. Sums are HUGEINT in DuckDB.
func Integer(t *testing.T, value any) int64 {
	t.Helper()
	switch v := value.(type) {
	case nil:
		return 0
	case int64:
		return v
	case int32:
		return int64(v)
	case fmt.Stringer:
		var n int64
		if _, err := fmt.Sscan(v.String(), &n); err == nil {
			return n
		}
	}
	t.Fatalf("%v (%T) is not an integer", value, value)
	return 0
}

// Within is the condition for a job's measured region. Its clock is the one
// that the kernel stamps records with, so the bounds are exact.
func (r *Recording) Within(t *testing.T, told Truth) string {
	t.Helper()
	offset := r.Number(t, "SELECT clock_offset_ns FROM session")
	return fmt.Sprintf("(ts_ns BETWEEN %d AND %d AND pid = %d)", told.Begin.Monotonic+offset, told.End.Monotonic+offset, told.PID)
}

// Region is Within for the recording's own job.
func (r *Recording) Region(t *testing.T) string { return r.Within(t, r.Truth) }

// Lossless fails the test when anything was lost: its counts would mean nothing.
func (r *Recording) Lossless(t *testing.T) {
	t.Helper()
	if lost := r.Counts(t, "SELECT source, sum(count) FROM warning WHERE kind = 'lost' GROUP BY ALL"); len(lost) > 0 {
		t.Fatalf("lost: %v", lost)
	}
}

// SameCounts compares counts by name, both ways.
func SameCounts(t *testing.T, what string, got, want map[string]int64) {
	t.Helper()
	names := slices.Collect(maps.Keys(got))
	for name := range want {
		if _, ok := got[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if got[name] != want[name] {
			t.Errorf("%s: %s: recorded %d, want %d", what, name, got[name], want[name])
		}
	}
	if len(want) == 0 {
		t.Errorf("%s: nothing to compare with", what)
	}
}
