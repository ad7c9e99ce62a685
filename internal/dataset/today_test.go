package dataset

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// today writes a dataset as this version does, and says of what schema it is.
func today(t *testing.T) string {
	t.Helper()
	d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spans := make([]event.Span, 3)
	for i := range spans {
		spans[i] = event.Span{ID: int64(i + 1), StartNS: int64(1000 * (i + 1)), DurationNS: 10, PID: 7, TID: 7, Weight: 2,
			SequenceNumber: -1, SliceID: 4, Call: &event.Call{Layer: "op", Name: "aten::add"}}
	}
	err = errors.Join(d.Session(event.Recording{ID: "today", StartedNS: 1}),
		d.Write(&event.Batch{Processes: []event.Process{{ID: 1, PID: 7, StartedNS: 1}}}),
		d.Write(&event.Batch{Spans: spans}), d.Close())
	if err != nil {
		t.Fatal(err)
	}
	return d.Dir()
}

// rewritten replaces the files of a table by what a query makes of their rows.
func rewritten(t *testing.T, dir, table, columns string) {
	t.Helper()
	pool, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	paths, err := filepath.Glob(filepath.Join(dir, table, "*.parquet"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files of %s: %v", table, err)
	}
	for _, path := range paths {
		if _, err := pool.Exec(fmt.Sprintf("CREATE OR REPLACE TABLE old AS SELECT %s FROM read_parquet('%s')", columns, path)); err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec(fmt.Sprintf("COPY old TO '%s' (FORMAT parquet)", path)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestADatasetOfTodayIsReadByTheRuleOfVersions: what an older minor version had not is
// NULL, what a newer one has more is a warning, and another major version is refused.
func TestADatasetOfTodayIsReadByTheRuleOfVersions(t *testing.T) {
	ours, _ := majorMinor(output.SchemaVersion)
	version := func(t *testing.T, dir string, major, minor int) {
		rewritten(t, dir, "session", fmt.Sprintf("* REPLACE ('%d.%d.0' AS schema_version)", major, minor))
	}
	sum := func(t *testing.T, db *DB) (calls float64, slices int64) {
		t.Helper()
		if err := db.Row(t.Context(), "SELECT sum(weight), count(slice_id) FROM span", nil, &calls, &slices); err != nil {
			t.Fatal(err)
		}
		return calls, slices
	}
	t.Run("as it is", func(t *testing.T) {
		db := open(t, today(t))
		if calls, slices := sum(t, db); calls != 6 || slices != 3 || len(db.Warnings()) != 0 {
			t.Errorf("%v calls, %d in slices, %q", calls, slices, db.Warnings())
		}
	})
	t.Run("older", func(t *testing.T) {
		dir := today(t)
		rewritten(t, dir, "span", "* EXCLUDE (slice_id, slice_step, python_stack_id)")
		version(t, dir, ours[0], 0)
		db := open(t, dir)
		if calls, slices := sum(t, db); calls != 6 || slices != 0 || len(db.Warnings()) != 0 {
			t.Errorf("%v calls, %d in slices, %q", calls, slices, db.Warnings())
		}
	})
	t.Run("newer minor", func(t *testing.T) {
		dir := today(t)
		rewritten(t, dir, "span", "*, 1 AS of_tomorrow")
		version(t, dir, ours[0], ours[1]+1)
		db := open(t, dir)
		if calls, slices := sum(t, db); calls != 6 || slices != 3 || len(db.Warnings()) != 1 {
			t.Errorf("%v calls, %d in slices, %q", calls, slices, db.Warnings())
		}
	})
	t.Run("newer major", func(t *testing.T) {
		dir := today(t)
		version(t, dir, ours[0]+1, 0)
		db, err := Open(dir)
		if err == nil {
			db.Close()
		}
		if !errors.Is(err, ErrNewer) {
			t.Errorf("%v", err)
		}
	})
}
