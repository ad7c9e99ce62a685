package unwind

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/internal/directory"
)

// What the cache keeps: some ten processes of PyTorch with CUDA, and what was
// used within a day whatever it takes, so that a job with more files does not
// compile the first of them again while it caches the last.
const (
	keptBytes = 256 << 20
	keptFor   = 24 * time.Hour
)

// noteUse notes that a table was used now, for Prune. Once a day is enough.
func noteUse(file *os.File, info fs.FileInfo) {
	if now := time.Now(); now.Sub(info.ModTime()) > keptFor/2 {
		_ = unix.Futimes(int(file.Fd()), []unix.Timeval{unix.NsecToTimeval(now.UnixNano()), unix.NsecToTimeval(now.UnixNano())})
	}
}

// Prune removes the tables that were unused longest, beyond what is kept, and
// what writers that died left behind. Compiling makes any of them again. Where no table
// came since a time, it looks at none: to look at thousands takes a fifth of a second.
func (c Cache) Prune(since time.Time) {
	if c.Directory == "" {
		return
	}
	if dir, err := os.Stat(c.Directory); err != nil || dir.ModTime().Before(since.Add(-time.Second)) {
		return
	}
	c.prune(keptBytes, keptFor)
}

func (c Cache) prune(bytes int64, within time.Duration) {
	dir, err := directory.OpenCache(c.Directory)
	if err != nil {
		return
	}
	defer dir.Close()
	names, err := dir.Names()
	if err != nil {
		return
	}
	var files []fs.FileInfo
	for _, name := range names {
		if !strings.HasSuffix(name, tableSuffix) && !strings.HasPrefix(name, temporaryPrefix) {
			continue
		}
		if info, err := dir.Info(name); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	now := time.Now()
	for _, f := range files {
		bytes -= f.Size()
		recent := now.Sub(f.ModTime()) < within
		abandoned := strings.HasPrefix(f.Name(), temporaryPrefix)
		if !recent && (bytes < 0 || abandoned) {
			_ = dir.Remove(f.Name()) // next time then
		}
	}
}
