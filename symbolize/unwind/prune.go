package unwind

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// What the cache keeps: some ten processes of PyTorch with CUDA, and what was
// used within a day whatever it takes, so that a job with more files does not
// compile the first of them again while it caches the last.
const (
	keptBytes = 256 << 20
	keptFor   = 24 * time.Hour
)

// used notes that a table was used now, for Prune. Once a day is enough.
func (c Cache) used(path string, info fs.FileInfo) {
	if now := time.Now(); now.Sub(info.ModTime()) > keptFor/2 {
		_ = os.Chtimes(path, now, now) // a cache of somebody else's stays as it is
	}
}

// Prune removes the tables that were unused longest, beyond what is kept, and
// what writers that died left behind. Compiling makes any of them again.
func (c Cache) Prune() {
	if c.Directory != "" {
		c.prune(keptBytes, keptFor)
	}
}

func (c Cache) prune(bytes int64, within time.Duration) {
	entries, err := os.ReadDir(c.Directory)
	if err != nil {
		return
	}
	var files []fs.FileInfo
	for _, e := range entries {
		ours := strings.HasSuffix(e.Name(), ".unwind") || strings.HasPrefix(e.Name(), ".unwind-")
		if info, err := e.Info(); err == nil && ours && info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	now := time.Now()
	for _, f := range files {
		bytes -= f.Size()
		recent := now.Sub(f.ModTime()) < within
		abandoned := strings.HasPrefix(f.Name(), ".unwind-")
		if !recent && (bytes < 0 || abandoned) {
			_ = os.Remove(filepath.Join(c.Directory, f.Name())) // next time then
		}
	}
}
