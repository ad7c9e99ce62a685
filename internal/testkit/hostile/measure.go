package hostile

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Largest is the largest file that a directory's file system takes, at most what
// an attacker would ask for.
func Largest(t testing.TB, dir string) uint64 {
	t.Helper()
	for size := uint64(559 << 30); size > 1<<30; size /= 2 {
		path := filepath.Join(dir, "size")
		if os.WriteFile(path, nil, 0o600) == nil && os.Truncate(path, int64(size)) == nil {
			os.Remove(path)
			return size
		}
	}
	t.Skip("no large files here")
	return 0
}

// Allocated is how many bytes a function allocates.
func Allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
