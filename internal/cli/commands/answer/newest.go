package answer

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// PathOrNewest is the one argument of a command that reads a dataset; without one, the newest dataset here.
func PathOrNewest(c *urfave.Context) (string, error) {
	arguments, err := cli.Interspersed(c)
	if err != nil {
		return "", cli.Mistaken(err)
	}
	if len(arguments) > 0 {
		return Path(c)
	}
	path, ok := newest(".")
	if !ok {
		return "", cli.Usagef("which dataset? There is none in this directory: ebpfprof %s DATASET", c.Command.Name)
	}
	fmt.Fprintf(c.App.ErrWriter, "reading %s, the newest dataset here\n", printable.Text(path))
	return path, nil
}

// newest is the dataset in a directory, or the directory itself, that was written last.
func newest(dir string) (path string, ok bool) {
	var at time.Time
	consider := func(candidate string) {
		info, err := os.Stat(filepath.Join(candidate, "session"))
		if err == nil && info.IsDir() && (!ok || info.ModTime().After(at)) {
			path, at, ok = candidate, info.ModTime(), true
		}
	}
	consider(dir)
	entries, err := fs.ReadDir(os.DirFS(dir), ".")
	if err != nil {
		return path, ok
	}
	for _, e := range entries {
		if e.IsDir() {
			consider(filepath.Join(dir, e.Name()))
		}
	}
	return path, ok
}
