// Package testelf has ELF files for tests: a tiny one, those of this machine, and
// what an assembler makes of a source.
package testelf

import (
	"embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Libtorchs lists the libtorch_cpu.so of this machine: the distribution's, and
// PyPI's in the project's cache.
func Libtorchs(t testing.TB) []string {
	home, _ := os.UserHomeDir()
	found := Globs(
		"/usr/lib/*-linux-gnu/libtorch_cpu.so.1.13.0",
		filepath.Join(home, ".cache/ebpfprof/torch-venv/lib/python3.*/site-packages/torch/lib/libtorch_cpu.so"),
	)
	if len(found) == 0 {
		t.Skip("no libtorch_cpu.so here: install python3-torch")
	}
	return found
}

// Globs lists the files of the machine that match any of the patterns.
func Globs(patterns ...string) []string {
	var found []string
	for _, p := range patterns {
		matches, _ := filepath.Glob(p)
		found = append(found, matches...)
	}
	return found
}

// ShortName tells the libraries of Libtorchs apart.
func ShortName(path string) string {
	if filepath.Base(path) == "libtorch_cpu.so" {
		return "pypi"
	}
	return filepath.Base(path)
}

// SystemLibraries are real files of different linkers and strippings: the
// distribution's and, in the project's cache, wheels'.
func SystemLibraries(t testing.TB) []string {
	t.Helper()
	found := Globs("/usr/lib/*-linux-gnu/libc.so.6", "/usr/lib/*-linux-gnu/libstdc++.so.6",
		"/usr/lib/*-linux-gnu/libpython3*.so.1.0", "/usr/bin/python3.[0-9]*[0-9]")
	found = append(found, Libtorchs(t)...)
	return found
}

// Assemble links a source into a library.
func Assemble(t testing.TB, source string, flags ...string) string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc here")
	}
	path := filepath.Join(t.TempDir(), "lib.so")
	c := exec.Command("gcc", append([]string{"-shared", "-nostdlib", "-o", path, "-x", "assembler", "-"}, flags...)...)
	c.Stdin = strings.NewReader(source)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

//go:embed testdata/tiny.so testdata/tiny-stripped.so
var files embed.FS

// Tiny is tiny.so or tiny-stripped.so, of testdata/tiny.c.
func Tiny(t testing.TB, name string) []byte {
	t.Helper()
	data, err := files.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
