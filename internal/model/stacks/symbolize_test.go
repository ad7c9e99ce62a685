package stacks

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset/query"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

const librarySource = "static __attribute__((noinline,used)) int hidden(int x) { return x * 3; }\nint shown(int x) { return hidden(x) + 1; }\n"

// library compiles a library with symbols and returns its directory, its build
// id and where the static function in it begins.
func library(t *testing.T) (dir, buildID string, hidden int64) {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc here")
	}
	dir = t.TempDir()
	path := filepath.Join(dir, "libjob.so")
	c := exec.Command("gcc", "-shared", "-fPIC", "-O1", "-Wl,--build-id", "-o", path, "-x", "c", "-")
	c.Stdin = strings.NewReader(librarySource)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	e, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s, ok := e.Lookup("hidden")
	if !ok {
		t.Fatal("no function hidden")
	}
	return dir, e.BuildID(), int64(s.Address)
}

func writeDataset(t *testing.T, stacks []event.Stack) string {
	t.Helper()
	d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Session(event.Recording{ID: "s"}), d.Write(&event.Batch{Stacks: stacks}), d.Close()); err != nil {
		t.Fatal(err)
	}
	return d.Dir()
}

func nameStacks(t *testing.T, dataset, debug string) *Named {
	t.Helper()
	db, err := query.Open(dataset)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	dir, err := symbolize.OpenDebugDir(debug)
	if err != nil {
		t.Fatal(err)
	}
	named, err := Symbolize(context.Background(), db, dir)
	if err != nil {
		t.Fatal(err)
	}
	return named
}

// contents are the checksums of a dataset's files.
func contents(t *testing.T, dataset string) map[string][32]byte {
	t.Helper()
	sums := map[string][32]byte{}
	err := filepath.WalkDir(dataset, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		relative, _ := filepath.Rel(dataset, path)
		sums[relative] = sha256.Sum256(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

func TestSymbolizeNamesWhatWasNamelessAndTouchesNothingElse(t *testing.T) {
	debug, id, hidden := library(t)
	frame := func(function string, offset int64, buildID string) symbolize.Frame {
		return symbolize.Frame{Kind: symbolize.Native, Function: function, Module: "libjob.so", BuildID: buildID, Offset: offset}
	}
	before := []event.Stack{
		{ID: 1, Folded: "old", Status: event.StackComplete, Inferred: 2, Frames: []event.Frame{frame("libjob.so+0x1 (fn)", hidden+1, id), step,
			frame("known", hidden+1, id)}},
		{ID: 2, Folded: "old", Status: "native_no_table", Frames: []event.Frame{frame("", hidden, id), frame("", 1, "00112233")}},
		{ID: 3, Folded: "old", Status: event.StackComplete, Frames: []event.Frame{frame("", -1, ""), {Kind: symbolize.Kernel, Module: "[kernel]",
			Offset: 5}}},
	}
	dataset := writeDataset(t, before)
	was := contents(t, dataset)
	n := nameStacks(t, dataset, debug)
	if n.Nameless != 3 || n.Named != 2 || n.Rewritten != 1 || len(n.Missing) != 1 || n.Missing[0] != (MissingFile{"libjob.so", "00112233", 1,
		false}) {
		t.Errorf("%+v", n)
	}
	is := contents(t, dataset)
	for name, sum := range was {
		if changed := is[name] != sum; changed != (name == "stack/s-000001.parquet") {
			t.Errorf("%s: changed %v", name, changed)
		}
	}
	if len(is) != len(was) {
		t.Errorf("%d files, there were %d", len(is), len(was))
	}
	want := before
	want[0].Frames[0].Function, want[0].Folded = "hidden", "known (libjob.so);step (train.py);hidden (libjob.so)"
	want[1].Frames[0].Function, want[1].Folded = "hidden", "libjob.so+0x1;hidden (libjob.so)"
	compareStacks(t, dataset, want)
	if again := nameStacks(t, dataset, debug); again.Nameless != 1 || again.Rewritten != 0 {
		t.Errorf("a second time: %+v", again)
	}
}

func compareStacks(t *testing.T, dataset string, want []event.Stack) {
	t.Helper()
	db, err := query.Open(dataset)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var got []event.Stack
	for _, path := range db.Files("stack") {
		rows, err := readStacks(context.Background(), db, path)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, rows...)
	}
	if len(got) != len(want) {
		t.Fatalf("%d stacks, want %d", len(got), len(want))
	}
	for i := range want {
		a, b := got[i], want[i]
		if a.ID != b.ID || a.Folded != b.Folded || a.Status != b.Status || a.Inferred != b.Inferred || len(a.Frames) != len(b.Frames) {
			t.Errorf("%+v, want %+v", a, b)
			continue
		}
		for j := range b.Frames {
			if a.Frames[j] != b.Frames[j] {
				t.Errorf("stack %d: %+v, want %+v", a.ID, a.Frames[j], b.Frames[j])
			}
		}
	}
}

func TestSymbolizeWithTheWrongFilesChangesNothing(t *testing.T) {
	debug, _, hidden := library(t)
	dataset := writeDataset(t, []event.Stack{{ID: 1, Status: event.StackComplete, Frames: []event.Frame{
		{Kind: symbolize.Native, Module: "libother.so", BuildID: "00112233", Offset: hidden}}}})
	was := contents(t, dataset)
	if n := nameStacks(t, dataset, debug); n.Nameless != 1 || n.Named != 0 || n.Rewritten != 0 {
		t.Errorf("%+v", n)
	}
	for name, sum := range contents(t, dataset) {
		if was[name] != sum {
			t.Errorf("%s changed", name)
		}
	}
}
