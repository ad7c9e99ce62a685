package elf

import (
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testelf"
)

// TestNamesAreThoseOfReadelf asks about the first and the last byte of every
// function that readelf lists, and about the byte behind it.
func TestNamesAreThoseOfReadelf(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector, which has nothing to find in it: make test-kernel runs it without")
	}
	for _, path := range testelf.SystemLibraries(t) {
		e := open(t, path)
		x := e.IndexFunctions()
		symbols := readelfSymbols(t, path, "FUNC", "IFUNC")
		byAddress, size := map[uint64]map[string]uint64{}, map[namedAddress]uint64{}
		for s, n := range symbols {
			if byAddress[s.address] == nil {
				byAddress[s.address] = map[string]uint64{}
			}
			byAddress[s.address][s.name] = n
			size[s] = n
		}
		checked := 0
		for s, n := range symbols {
			if n == 0 || s.address == 0 || !e.IsCode(s.address) {
				continue
			}
			checked++
			for _, address := range []uint64{s.address, s.address + n/2, s.address + n - 1} {
				got, ok := x.Covering(address)
				want, named := byAddress[got.Address][got.Name]
				if !ok || !named || want != got.Size && got.Size != 0 && want != 0 || address < got.Address || address >= got.Address+got.Size {
					t.Fatalf("%s: %#x in %s [%#x,+%d) is %+v, %v", path, address, s.name, s.address, n, got, ok)
				}
			}
			if got, ok := x.Covering(s.address + n); ok && got.Address == s.address && got.Size <= n {
				t.Fatalf("%s: %#x, behind %s [%#x,+%d), is %+v", path, s.address+n, s.name, s.address, n, got)
			}
		}
		t.Logf("%s: %d functions, index of %d KiB", filepath.Base(path), checked, len(x.entries)*int(unsafe.Sizeof(x.entries[0]))>>10)
	}
}

func TestAnIndexEntryIsSixteenBytes(t *testing.T) {
	if n := unsafe.Sizeof(indexEntry{}); n != 16 {
		t.Errorf("%d bytes", n)
	}
}

const overlapSource = `
.text
.globl outer, inner, bare, alias, _alias
.type outer,@function; .type inner,@function; .type bare,@function; .type alias,@function; .type _alias,@function
outer: nop; nop
inner: nop; nop
.size inner, .-inner
nop
.size outer, .-outer
nop; nop
bare: .cfi_startproc
nop; nop; nop
.cfi_endproc
nop; nop
alias: _alias: nop
.size alias, .-alias
.size _alias, .-_alias
`

func TestNestedSizelessAndAliasedSymbols(t *testing.T) {
	e := open(t, testelf.Assemble(t, overlapSource))
	x := e.IndexFunctions()
	outer, _ := e.Lookup("outer")
	bare, _ := e.Lookup("bare")
	for _, c := range []struct {
		address uint64
		want    string
	}{
		{outer.Address, "outer"}, {outer.Address + 1, "outer"}, {outer.Address + 2, "inner"}, {outer.Address + 3, "inner"},
		{outer.Address + 4, "outer"}, {outer.Address + 5, ""}, {outer.Address + 6, ""},
		{bare.Address, "bare"}, {bare.Address + 2, "bare"}, {bare.Address + 3, ""},
		{bare.Address + 5, "alias"}, {bare.Address + 6, ""}, {0, ""}, {^uint64(0), ""},
	} {
		if s, ok := x.Covering(c.address); s.Name != c.want || ok != (c.want != "") {
			t.Errorf("outer+%d is %q, want %q", c.address-outer.Address, s.Name, c.want)
		}
	}
}
