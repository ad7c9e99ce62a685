package snapshot

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A small file that unpacks to one letter without end is no snapshot, as a pickle and as JSON.
func TestWhatUnpacksToFarMoreIsNoSnapshot(t *testing.T) {
	for name, begin := range map[string]string{"letters.pickle.gz": "\x80\x04X\xff\xff\xff\x7f", "letters.json.gz": `{"segments":["`} {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		piece := []byte(strings.Repeat("x", 1<<20))
		if _, err := z.Write([]byte(begin)); err != nil {
			t.Fatal(err)
		}
		for range mostUnpacked>>20 + 2 {
			if _, err := z.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, packed.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), "400 times its size") {
			t.Errorf("%s of %d bytes: %v", name, packed.Len(), err)
		}
	}
}
