// Package elftest opens files for tests that have nothing to say about opening them.
//
// The package is no part of the public API: it may change with any version.
package elftest

import (
	"bytes"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// Open opens a file until the test ends.
func Open(t testing.TB, path string) *elf.File {
	t.Helper()
	e, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// New reads a file out of memory.
func New(t testing.TB, data []byte) *elf.File {
	t.Helper()
	e, err := elf.New(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return e
}
