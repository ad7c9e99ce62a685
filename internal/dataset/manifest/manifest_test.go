package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func uploaded(n int) string {
	return fmt.Sprintf("%s-%016x.parquet", time.Unix(int64(n), 0).UTC().Format(KeyTime), uint64(n)<<40|uint64(n))
}

func TestWhatWasMergedDoesNotCountAndTheMergedFileDoes(t *testing.T) {
	first, second, orphan := MergedName(time.Unix(9, 0), 1, [8]byte{1}), MergedName(time.Unix(9, 0), 2, [8]byte{2}),
		MergedName(time.Unix(9, 0), 2, [8]byte{3})
	var m *Manifest
	if !m.Counts(uploaded(1)) || m.Counts(first) {
		t.Error("without a manifest what uploaders put counts, and nothing else")
	}
	m = m.Next(100, []string{uploaded(3), uploaded(1), uploaded(2)}, []File{{first, 10, 3}})
	m = m.Next(200, []string{uploaded(5), first}, []File{{second, 20, 4}})
	text, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Decode(bytes.NewReader(text))
	if err != nil || again.Generation != 2 {
		t.Fatalf("%+v, %v", again, err)
	}
	for name, want := range map[string]bool{uploaded(1): false, uploaded(2): false, uploaded(3): false, uploaded(4): true, uploaded(5): false,
		first: false, second: true, orphan: false, "of somebody.parquet": true} {
		if m.Counts(name) != want || again.Counts(name) != want {
			t.Errorf("%s counts: %v, %v, want %v", name, m.Counts(name), again.Counts(name), want)
		}
	}
	for name, want := range map[string]int64{uploaded(2): 100, first: 200, uploaded(5): 200} {
		if at, ok := again.MergedAt(name); !ok || at != want {
			t.Errorf("%s: %d, %v", name, at, ok)
		}
	}
	if few, err := decode(bytes.NewReader(text), false); err != nil || !few.Counts(second) || few.Counts(first) {
		t.Errorf("%+v, %v", few, err)
	}
	for _, damaged := range [][]byte{nil, text[:len(text)-1], append(bytes.Clone(text), 0), []byte("{}"), []byte("x\n"),
		[]byte(`{"merged":[{"count":-1}]}` + "\n"),
		[]byte(`{"merged":[{"count":99999999}]}` + "\n")} {
		if _, err := Decode(bytes.NewReader(damaged)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%.20q: %v", damaged, err)
		}
	}
}

func TestTheReaderTakesTheLatestManifest(t *testing.T) {
	root := t.TempDir()
	const partition = "pattern/job=j/date=2026-11-23"
	none, err := NewReader(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	first, second := MergedName(time.Unix(9, 0), 1, [8]byte{1}), MergedName(time.Unix(9, 0), 2, [8]byte{2})
	name := partition + "/host=h/" + uploaded(1)
	var m *Manifest
	m = m.Next(1, []string{uploaded(1)}, []File{{first, 1, 1}})
	for range 2 {
		text, _ := m.Encode()
		file := filepath.Join(root, Key(partition, m.Generation))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, text, 0o600)); err != nil {
			t.Fatal(err)
		}
		m = m.Next(2, []string{first}, []File{{second, 1, 1}})
	}
	r, err := NewReader(os.DirFS(root))
	if err != nil || none.Same(r) || !r.Same(r) {
		t.Fatal("a manifest is not noticed", err)
	}
	for name, want := range map[string]bool{name: false, partition + "/" + first: false, partition + "/" + second: true,
		"pattern/job=j/date=2026-11-24/host=h/" + uploaded(1): true, "pattern/job=k/date=2026-11-23/" + second: false,
		"span/part-1.parquet": true} {
		if got, err := r.Counts(name); err != nil || got != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if got, _ := none.Counts(name); !got {
		t.Error("without a manifest an uploader's file counts")
	}
	if err := os.WriteFile(filepath.Join(root, Key(partition, 3)), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err = NewReader(os.DirFS(root)); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Counts(name); !got || !errors.Is(err, ErrDamaged) {
		t.Errorf("beside a damaged manifest: %v, %v", got, err)
	}
}
