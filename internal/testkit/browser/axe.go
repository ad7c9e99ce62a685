package browser

import (
	"os"
	"path/filepath"
	"testing"
)

// axe is where scripts/axe-core.sh puts it, in the cache.
const axe = "axe-core-4.14.1/axe.min.js"

// Axe is the source of axe-core, which checks a page's accessibility; a test is skipped where it was not fetched.
func Axe(t *testing.T) string {
	t.Helper()
	cache := os.Getenv("EBPFPROF_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Skip(err)
		}
		cache = filepath.Join(home, ".cache", "ebpfprof")
	}
	source, err := os.ReadFile(filepath.Join(cache, axe))
	if err != nil {
		t.Skipf("axe-core was not fetched: scripts/axe-core.sh does that (%v)", err)
	}
	return string(source)
}
