package output

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/output/columnfile"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

func stackFile(t *testing.T, rows []event.Stack) string {
	t.Helper()
	d, err := Create(filepath.Join(t.TempDir(), "d"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Session(event.Recording{ID: "s", ToolVersion: "7"}), d.Write(&event.Batch{Stacks: rows}), d.Close()); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(d.Dir(), "stack", "s-000001.parquet")
}

func TestRewrittenStacksAreTheFileThatWouldHaveBeenWritten(t *testing.T) {
	nameless := []event.Stack{{ID: 7, Frames: []event.Frame{{Kind: "native", Module: "l.so", BuildID: "ab", Offset: 1}}, Folded: "l.so+0x1",
		Status: event.StackComplete}, {ID: 8, Status: "x"}}
	named := []event.Stack{{ID: 7, Frames: []event.Frame{{Kind: "native", Function: "f", Module: "l.so", BuildID: "ab", Offset: 1}},
		Folded: "f (l.so)", Status: event.StackComplete}, {ID: 8, Status: "x"}}
	path, want := stackFile(t, nameless), stackFile(t, named)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := RewriteStacks(path, named); err != nil {
		t.Fatal(err)
	}
	a, err := os.ReadFile(path)
	b, err2 := os.ReadFile(want)
	if err != nil || err2 != nil || !bytes.Equal(a, b) {
		t.Errorf("%d bytes, want %d: %v, %v", len(a), len(b), err, err2)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 2 { // and schema.parquet
		t.Errorf("%v, %v", entries, err)
	}
}

func TestWhatCannotBeRewrittenStaysAsItIs(t *testing.T) {
	rows := []event.Stack{{ID: 7, Status: "x"}}
	path := stackFile(t, rows)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	spans := filepath.Join(filepath.Dir(path), "..", "span", "schema.parquet")
	if err := RewriteStacks(spans, nil); !errors.Is(err, ErrForeign) {
		t.Errorf("a file of another table: %v", err)
	}
	if err := RewriteStacks(path, append(rows, rows...)); err == nil {
		t.Error("more rows than there were")
	}
	if err := RewriteStacks(path+".missing", rows); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file changed: %v", err)
	}
	for version, later := range map[string]bool{SchemaVersion: false, "1.0.0": false, "1.99.0": true, "2.0.0": true, "0.9.0": true, "": true,
		"1.x.0": true} {
		s := columnfile.Summary{Metadata: map[string]string{MetadataTable: "stack", MetadataSession: "s", MetadataSchemaVersion: version}}
		if err := checkRewritable(s, 0); errors.Is(err, ErrForeign) != later {
			t.Errorf("schema %q: %v", version, err)
		}
	}
}
