// Package injection puts the library that asks CUPTI into a command's CUDA: the CUDA driver loads what a variable of the
// environment names. The library's source is in cupti; scripts/cupti.sh builds it into built, from where it is embedded.
package injection

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

//go:embed built
var built embed.FS

const file = "libebpfprof-cupti.so"

// Variable is what the CUDA driver looks the library up in.
const Variable = "CUDA_INJECTION64_PATH"

var (
	// ErrNotBuilt: this program was built without the library.
	ErrNotBuilt = errors.New("this program was built without the library that asks CUPTI: " +
		"run scripts/cupti.sh, which needs pip and a C compiler, and build again")
	errNoPlace = errors.New("no directory takes a library that can be loaded: set TMPDIR to one that is not mounted noexec")
)

// Available says that the library is embedded: nil, or ErrNotBuilt.
func Available() error {
	if _, err := built.ReadFile("built/" + file); err != nil {
		return ErrNotBuilt
	}
	return nil
}

// Library is the library in a directory of its own, which others can read it in if they know the name, and not change.
type Library struct {
	Path string
	dir  string
}

// Install writes the library.
func Install() (*Library, error) {
	content, err := built.ReadFile("built/" + file)
	if err != nil {
		return nil, ErrNotBuilt
	}
	for _, above := range []string{os.TempDir(), "/var/tmp", "/run"} {
		var fs unix.Statfs_t
		if unix.Statfs(above, &fs) != nil || fs.Flags&unix.ST_NOEXEC != 0 {
			continue
		}
		l, err := installIn(above, content)
		if err != nil {
			return nil, fmt.Errorf("writing the library that asks CUPTI: %w", err)
		}
		return l, nil
	}
	return nil, errNoPlace
}

func installIn(above string, content []byte) (*Library, error) {
	dir, err := os.MkdirTemp(above, "ebpfprof-cupti-")
	if err != nil {
		return nil, err
	}
	l := &Library{Path: filepath.Join(dir, file), dir: dir}
	if err := errors.Join(os.WriteFile(l.Path, content, 0o600), os.Chmod(l.Path, 0o555), os.Chmod(dir, 0o711)); err != nil {
		return nil, errors.Join(err, l.Remove())
	}
	return l, nil
}

// Remove removes it; who has loaded it keeps it.
func (l *Library) Remove() error { return os.RemoveAll(l.dir) }
