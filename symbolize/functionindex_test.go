package symbolize

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"
)

// TestNamesAreThoseOfReadelf asks about the first and the last byte of every
// function that readelf lists, and about the byte behind it.
func TestNamesAreThoseOfReadelf(t *testing.T) {
	for _, path := range systemLibraries(t) {
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
		t.Logf("%s: %d functions, index of %d KiB", filepath.Base(path), checked, len(x.places)*int(unsafe.Sizeof(x.places[0]))>>10)
	}
}

func TestAnIndexEntryIsSixteenBytes(t *testing.T) {
	if n := unsafe.Sizeof(functionPlace{}); n != 16 {
		t.Errorf("%d bytes", n)
	}
}

func TestNamelessCodeIsNamedAfterItsFrameDescription(t *testing.T) {
	e := parse(t, tiny(t, "tiny-stripped.so"))
	f := NewFile(e, "/some/where/tiny.so")
	functions := map[string]bool{}
	nameless := 0
	for _, start := range e.FunctionStarts() {
		_, end, _ := e.Extent(start)
		if s, ok := e.IndexFunctions().Covering(start); ok {
			functions[s.Name] = true
			continue
		}
		nameless++
		first, last := f.Frame(start).Function, f.Frame(end-1).Function
		if first != last && !strings.HasSuffix(last, "@plt") || !strings.HasPrefix(first, "tiny.so+0x") && !strings.HasSuffix(first, "@plt") {
			t.Errorf("[%#x,%#x) is %q to %q", start, end, first, last)
		}
		if strings.HasPrefix(first, "tiny.so+") != IsPlace(first) {
			t.Errorf("IsPlace(%q) = %v", first, IsPlace(first))
		}
	}
	if nameless == 0 || len(functions) == 0 {
		t.Fatalf("%d nameless functions, %d named", nameless, len(functions))
	}
	if got := f.Frame(1 << 40).Function; got != "" {
		t.Errorf("an address outside of the file is %q", got)
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

// assemble links a source into a library.
func assemble(t *testing.T, source string, flags ...string) string {
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

func TestNestedSizelessAndAliasedSymbols(t *testing.T) {
	e := open(t, assemble(t, overlapSource))
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
