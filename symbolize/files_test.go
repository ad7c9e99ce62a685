package symbolize

import (
	"bytes"
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

func parse(t testing.TB, data []byte) *elf.File {
	t.Helper()
	e, err := elf.New(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return e
}
