package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testfile"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// empty is a dataset with a session and nothing else.
func empty(t *testing.T) string {
	t.Helper()
	d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Session(event.Recording{ID: "s1"}), d.Close()); err != nil {
		t.Fatal(err)
	}
	return d.Dir()
}

func open(t *testing.T, dir string) *DB {
	t.Helper()
	db, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestDirectoriesForSpillingThatAKillLeftGoWithTheNextQuery(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	recording := empty(t)
	killed, err := newSpill()
	if err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, filepath.Join(killed.path, "duckdb_temp_storage.tmp"), "rows of somebody's")
	killed.lock.Close() // as the kernel does
	other := filepath.Join(temporary, "ebpfprof-dataset-mine")
	testfile.Write(t, filepath.Join(other, "notes"), "made by hand, readable by all")
	if err := os.Chmod(other, 0o755); err != nil {
		t.Fatal(err)
	}
	busy := open(t, recording)
	open(t, recording)
	for path, want := range map[string]bool{killed.path: false, other: true, busy.spill.path: true} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s: there is %t, want %t", path, err == nil, want)
		}
	}
}
