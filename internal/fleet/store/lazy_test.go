package store

import (
	"os"
	"path/filepath"
	"testing"
)

// An agent whose store is not there yet has it once it is, and another once it is told so.
func TestAStoreThatComesLaterIsOpenedThen(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(file, "below")
	l := &Lazy{Location: func() string { return at }}
	if err := l.Put(t.Context(), "v1/a", []byte("x")); err == nil {
		t.Error("below a file there is no store")
	}
	for _, at = range []string{filepath.Join(root, "one"), filepath.Join(root, "two")} {
		if err := os.Mkdir(at, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := l.Put(t.Context(), "v1/a", []byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(at, "v1", "a")); err != nil {
			t.Error(err)
		}
		first, _ := l.Get()
		if again, err := l.Get(); err != nil || again != first {
			t.Errorf("it is opened each time: %v", err)
		}
	}
}
