package dataset

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// A query that needs more memory than its limit, and may not spill, fails instead of taking the machine's.
func TestAQueryBeyondItsMemoryLimitFails(t *testing.T) {
	const hungry = "SELECT count(*) FROM (SELECT DISTINCT hash(range) AS h, range AS r FROM range(6000000))"
	dir := filepath.Join(t.TempDir(), "d")
	d, err := output.Create(dir, output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Session(event.Recording{ID: "s"}), d.Close()); err != nil {
		t.Fatal(err)
	}
	db, err := OpenWithin(dir, Limits{MemoryBytes: 32 << 20, SpillBytes: 1 << 20, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int64
	if err := db.Row(t.Context(), hungry, nil, &n); err == nil || !strings.Contains(err.Error(), "Out of Memory") {
		t.Errorf("%v", err)
	}
	var threads string
	if err := db.Row(t.Context(), "SELECT current_setting('threads')::VARCHAR", nil, &threads); err != nil || threads != "1" {
		t.Errorf("%s threads, %v", threads, err)
	}
	if err := db.Exec(t.Context(), "SET memory_limit = '1 GB'"); err == nil {
		t.Error("the limit can be raised")
	}
}
