package data

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testcommand"
)

func TestSymbolizeRefusesWhatItCannotDo(t *testing.T) {
	dir, empty := queryDataset(t), t.TempDir()
	file := filepath.Join(empty, "file")
	if err := os.WriteFile(file, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code      int
		words     string
		arguments []string
	}{
		{cli.ExitUsage, "which dataset", []string{"--debug-dir", empty}},
		{cli.ExitUsage, "--debug-dir DIR", []string{dir}},
		{cli.ExitFailed, "there is no directory", []string{dir, "--debug-dir", empty + ".missing"}},
		{cli.ExitFailed, "is no directory", []string{dir, "--debug-dir", file}},
		{cli.ExitFailed, "there is no dataset", []string{dir + ".missing", "--debug-dir", empty}},
	} {
		out, _, code, err := testcommand.Run(SymbolizeCommand(), c.arguments...)
		if code != c.code || err == nil || !strings.Contains(err.Error(), c.words) || out != "" {
			t.Errorf("%q: %d, %v, %q", c.arguments, code, err, out)
		}
	}
	out, _, code, err := testcommand.Run(SymbolizeCommand(), dir, "--debug-dir", empty)
	if code != 0 || err != nil || !strings.Contains(out, "every native frame has its symbol") {
		t.Errorf("nothing to do: %d, %v, %q", code, err, out)
	}
}
