package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset/query"
)

func made(t *testing.T) *Store {
	t.Helper()
	s, err := Create(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a1", "a2"} {
		if err := errors.Join(s.AddSession(Session{ID: id, Begin: 1}), s.AddRun(Run{Session: id, ID: id + ":1", Name: "n", Begin: 2},
			[]Number{{Session: id, Run: id + ":1", Name: "v", Value: new(1.5)}}),
			s.AddSession(Session{ID: id, Begin: 1, End: new(int64(9))})); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Place(id, "0001"); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestASessionIsThereAsItWasWrittenLast(t *testing.T) {
	c, err := made(t).Read()
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Sessions) != 2 || c.Sessions[0].End == nil || *c.Sessions[0].End != 9 || len(c.RunsOf("a2")) != 1 ||
		*c.Numbers["a2:1"][0].Value != 1.5 {
		t.Errorf("%+v", c)
	}
}

func TestADamagedFileIsLeftOutAndNamed(t *testing.T) {
	s := made(t)
	if err := os.WriteFile(filepath.Join(s.Root(), RunTable, "a3.1.parquet"), []byte("PAR1 and no more"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := s.Read()
	if err != nil || len(c.Runs) != 2 || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "a3.1.parquet") {
		t.Errorf("%d runs, %q, %v", len(c.Runs), c.Warnings, err)
	}
}

func TestDeletingLeavesNothingOfASessionAndAllOfOthers(t *testing.T) {
	s := made(t)
	for _, name := range []string{"", "../a1", ".", "a/b"} {
		if err := s.Delete(name); err == nil {
			t.Errorf("%q is deleted", name)
		}
	}
	if err := s.Delete("a1"); err != nil {
		t.Fatal(err)
	}
	var left []string
	err := filepath.WalkDir(s.Root(), func(path string, _ os.DirEntry, err error) error {
		if strings.HasPrefix(filepath.Base(path), "a1") {
			left = append(left, path)
		}
		return err
	})
	c, readErr := s.Read()
	if err != nil || readErr != nil || len(left) > 0 || len(c.Sessions) != 1 || len(c.Runs) != 1 {
		t.Errorf("%q are left, %d sessions, %v, %v", left, len(c.Sessions), err, readErr)
	}
}

func TestAStoreIsQueriedLikeARecording(t *testing.T) {
	s := made(t)
	db, err := query.Open(s.Root())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r, err := db.Run(t.Context(), "SELECT count(*) FROM bench_number JOIN bench_run USING (run_id) WHERE pval > 1")
	if err != nil || len(r.Rows) != 1 || r.Rows[0][0] != int64(2) {
		t.Errorf("%v, %v", r, err)
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrNoStore) {
		t.Errorf("an empty directory: %v", err)
	}
}
