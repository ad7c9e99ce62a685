package store

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
)

func TestWhatIsPutTwiceIsThereOnce(t *testing.T) {
	ctx := t.Context()
	s, err := NewDirectory(filepath.Join(t.TempDir(), "new", "store"))
	if err != nil {
		t.Fatal(err)
	}
	b := Batch{Session: "s", Job: "j", Host: "h", EventBytes: 1000, Steps: []pattern.Step{{Rank: -1, PeriodNS: 5}},
		Patterns: []pattern.Pattern{{Rank: 0, BeginNS: 1, Name: "f", Beta: 0.5}, {Rank: -1, BeginNS: 1, Name: "g"}}}
	n, err := Send(ctx, s, b)
	if err != nil || n <= 0 {
		t.Fatal(n, err)
	}
	if _, err := Send(ctx, s, b); err != nil {
		t.Fatal(err)
	}
	keys, err := s.List(ctx, Version+"/")
	if err != nil || len(keys) != 3 {
		t.Fatalf("%q, %v", keys, err)
	}
	r, err := s.Get(ctx, keys[0])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.Read[PatternRow](bytes.NewReader(content), int64(len(content)))
	if err != nil || len(rows) != 2 {
		t.Fatal(rows, err)
	}
	// Rank 0 is a rank, no rank is NULL.
	if rows[0].Rank == nil || *rows[0].Rank != 0 || rows[1].Rank != nil || rows[0].Beta != 0.5 || rows[0].Wait != nil {
		t.Errorf("%+v", rows)
	}
	if left, _ := filepath.Glob(filepath.Join(s.String(), "*/*/*/*/*/.part-*")); len(left) > 0 {
		t.Errorf("unfinished files are left: %q", left)
	}
}

// A job chooses its own name: whatever it is, the file lies in the store.
func TestNamesOfJobsDoNotLeaveTheStore(t *testing.T) {
	ctx := context.Background()
	root := t.TempDir()
	s, err := NewDirectory(filepath.Join(root, "store"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"../../../../out", "/etc/passwd", ".", "..", "", "a\x00b", "job=x/date=y", "x\n", strings.Repeat("é", 300),
		strings.Repeat("..", 400), "*'\\"}
	seen := map[string]string{}
	for _, name := range names {
		key := Partition{"pattern", name, name, time.Unix(0, 0)}.Key(nil)
		if other, twice := seen[key]; twice {
			t.Errorf("%q and %q have one key", name, other)
		}
		seen[key] = name
		if parts := strings.Split(key, "/"); len(parts) != 6 {
			t.Errorf("%q: key %q", name, key)
		}
		if err := s.Put(ctx, key, []byte("x")); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	entries, _ := os.ReadDir(root)
	if len(entries) != 1 {
		t.Errorf("%v", entries)
	}
	if err := s.Put(ctx, "../out", nil); err == nil {
		t.Error("a key that leaves the store was taken")
	}
	if keys, _ := s.List(ctx, Version+"/"); len(keys) != len(names) {
		t.Errorf("%d of %d keys", len(keys), len(names))
	}
}

func TestADirectoryWithoutAStoreIsNamed(t *testing.T) {
	if _, err := OpenDirectory(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a store") {
		t.Error(err)
	}
	if _, err := OpenDirectory(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "there is no store") {
		t.Error(err)
	}
	empty, err := NewDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Send(t.Context(), empty, Batch{}); err == nil {
		t.Error("an upload of nothing was taken")
	}
}

// Who may write into a shared store can put a link there: the agent, which is root,
// writes and reads nothing through it.
func TestALinkInTheStoreLeadsNowhere(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	if err := os.MkdirAll(filepath.Join(outside, "job=j"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := NewDirectory(filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "store", Version), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "store", Version, "pattern")); err != nil {
		t.Fatal(err)
	}
	key := Partition{"pattern", "j", "h", time.Unix(0, 0)}.Key(nil)
	if err := s.Put(t.Context(), key, []byte("y")); err == nil {
		t.Error("a file was written through a link")
	}
	if f, err := s.Get(t.Context(), Version+"/pattern/secret"); err == nil {
		f.Close()
		t.Error("a file was read through a link")
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "store", Version, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := s.Get(t.Context(), Version+"/pipe"); err == nil {
		f.Close()
		t.Error("a FIFO was opened for reading")
	}
	if entries, _ := os.ReadDir(filepath.Join(outside, "job=j")); len(entries) != 0 {
		t.Errorf("%v", entries)
	}
}
