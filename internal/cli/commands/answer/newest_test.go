package answer

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestTheNewestDatasetIsTheOneWrittenLast, whatever its name; what is no dataset does not count.
func TestTheNewestDatasetIsTheOneWrittenLast(t *testing.T) {
	dir := t.TempDir()
	if path, ok := newest(dir); ok {
		t.Errorf("%s in an empty directory", path)
	}
	for i, name := range []string{"b", "a", "c"} {
		session := filepath.Join(dir, name, "session")
		if err := os.MkdirAll(session, 0o755); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(int64(1e9+1000*(i%2)), 0) // a is the newest
		if err := os.Chtimes(session, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "z"), 0o755); err != nil {
		t.Fatal(err)
	}
	if path, ok := newest(dir); !ok || filepath.Base(path) != "a" {
		t.Errorf("%s, %v", path, ok)
	}
}
