package torch

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

func open(t testing.TB, path string) *elf.File {
	t.Helper()
	e, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}
