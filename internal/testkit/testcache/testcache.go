// Package testcache is for tests that use what the scripts have fetched: it lies in a
// cache outside of the repository, EBPFPROF_CACHE or the user's own.
package testcache

import (
	"os"
	"path/filepath"
	"testing"
)

// Path is that of a file or directory in the cache. A test is skipped without it, and says
// what to run.
func Path(t testing.TB, name, missing string) string {
	t.Helper()
	cache := os.Getenv("EBPFPROF_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Skip(err)
		}
		cache = filepath.Join(home, ".cache/ebpfprof")
	}
	path := filepath.Join(cache, name)
	if _, err := os.Stat(path); err != nil {
		t.Skip(missing)
	}
	return path
}
