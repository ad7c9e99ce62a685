package symbolize

import (
	"os"
	"path/filepath"
	"testing"
)

// libtorchs lists the libtorch_cpu.so of this machine: the distribution's, and
// PyPI's in the project's cache.
func libtorchs(t testing.TB) []string {
	home, _ := os.UserHomeDir()
	found := globs(
		"/usr/lib/*-linux-gnu/libtorch_cpu.so.1.13.0",
		filepath.Join(home, ".cache/ebpfprof/torch-venv/lib/python3.*/site-packages/torch/lib/libtorch_cpu.so"),
	)
	if len(found) == 0 {
		t.Skip("no libtorch_cpu.so here: install python3-torch")
	}
	return found
}

func globs(patterns ...string) []string {
	var found []string
	for _, p := range patterns {
		matches, _ := filepath.Glob(p)
		found = append(found, matches...)
	}
	return found
}

func shortName(path string) string {
	if filepath.Base(path) == "libtorch_cpu.so" {
		return "pypi"
	}
	return filepath.Base(path)
}

func open(t testing.TB, path string) *ELF {
	t.Helper()
	e, err := OpenELF(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}
