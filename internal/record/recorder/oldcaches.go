package recorder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/directory"
)

// cacheFormat is raised when what is kept of libraries for the next recording must not
// be believed any more: 2 has keys that no other file can have; before,
// plans were believed by build id and size.
const cacheFormat = "2"

// formatFile says in a cache's directory which format its files have.
const formatFile = "format"

// caches are what is made of libraries, below the user's directory for caches.
var caches = []string{"plans", "unwind"}

// throwOldCaches empties the caches of another format, and says so. One that others can
// write into is not used (directory.ErrNotOurs), with a warning.
func throwOldCaches(to io.Writer) {
	user, err := os.UserCacheDir()
	if err != nil {
		return // nothing is kept
	}
	for _, name := range caches {
		path := filepath.Join(user, "ebpfprof", name)
		n, err := throwOld(path)
		switch {
		case errors.Is(err, directory.ErrNotOurs):
			fmt.Fprintf(to, "%s is not used: others can write into it; remove it, and the next recording makes it anew\n", path)
		case err != nil && n > 0:
			fmt.Fprintf(to, "%s has files of an older version that could not be removed: %v\n", path, err)
		case err != nil: // a cache that cannot be made keeps nothing
		case n > 0:
			files := "files"
			if n == 1 {
				files = "file"
			}
			fmt.Fprintf(to, "%s: threw %d %s of an older version away; the libraries are looked into again\n", path, n, files)
		}
	}
}

// throwOld empties one cache if its format is another, and says how many files it had.
func throwOld(path string) (n int, err error) {
	open := directory.OpenCache
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		open = directory.MakeCache // with its format, before anything is kept there
	}
	dir, err := open(path)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	if f, err := dir.Open(formatFile); err == nil {
		text, _ := io.ReadAll(io.LimitReader(f, 64))
		f.Close()
		if strings.TrimSpace(string(text)) == cacheFormat {
			return 0, nil
		}
	}
	names, err := dir.Names()
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		if err := dir.Remove(name); err != nil {
			return n, err
		}
		if name != formatFile {
			n++
		}
	}
	return n, dir.Write(formatFile, ".format-", []byte(cacheFormat+"\n"))
}
