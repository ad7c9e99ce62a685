package elf

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/hostile"
)

// Thousands of symbols that share one endless name, and one address.
func TestSymbolsThatShareANameAreNotCopied(t *testing.T) {
	const symbols = 100_000
	table := make([]byte, 24)
	for range symbols {
		table = append(table, hostile.Symbol(1, 0x1000, 16)...)
	}
	names := append([]byte{0}, bytes.Repeat([]byte("a"), maxSymbolName-2)...)
	names = append(names, 0)
	path := filepath.Join(t.TempDir(), "lib.so")
	file := hostile.File{Size: 16 << 20, Sections: []hostile.Section{
		{Name: ".symtab", Kind: hostile.Symtab, Offset: 0x100000, Contents: table, Link: 2},
		{Name: ".strtab", Kind: hostile.Strtab, Offset: 0x8000, Contents: names},
	}}
	if err := file.Write(path); err != nil {
		t.Fatal(err)
	}
	e := open(t, path)
	bytes := hostile.Allocated(func() {
		if _, ok := e.Lookup(strings.Repeat("a", 100)); ok {
			t.Error("found a prefix of a name")
		}
		if found := e.FunctionsWithPrefixes([]string{"a"}); len(found) > 1 {
			t.Errorf("%d functions of one name at one address", len(found))
		}
		e.IndexFunctions().Covering(0x1000)
	})
	if bytes > 512<<20 {
		t.Errorf("%d MiB were allocated", bytes>>20)
	}
}
