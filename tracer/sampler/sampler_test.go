package sampler

import (
	"reflect"
	"strings"
	"testing"
)

func TestTheKernelsListOfCPUsIsRead(t *testing.T) {
	for list, want := range map[string][]int{"0": {0}, "0-2,5": {0, 1, 2, 5}, "x": nil, "3-1": nil, "": nil, "0-": nil} {
		got, err := parseCPUList(list)
		if !reflect.DeepEqual(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q is %v, %v", list, got, err)
		}
	}
}

func TestKernelSymbolsHaveABeginningAndAnEnd(t *testing.T) {
	kallsyms := "ffffffff81000c20 T asm_exc_int3\nffffffff81000c20 t alias\nffffffff81000c60 T asm_exc_page_fault\n"
	for name, want := range map[string][2]uint64{
		"asm_exc_int3": {0xffffffff81000c20, 0xffffffff81000c60}, "exc_int3": {}, "missing": {},
	} {
		if at := kernelSymbols(strings.NewReader(kallsyms), name)[0]; at != (symbolPlace{want[0], want[1]}) {
			t.Errorf("%s is at %x..%x", name, at.address, at.next)
		}
	}
	if at := kernelSymbols(strings.NewReader(strings.Repeat("0000000000000000 T hidden\n", 3)), "hidden")[0]; at != (symbolPlace{}) {
		t.Errorf("a hidden address is %x..%x", at.address, at.next)
	}
}

// The kernel prints each symbol when it is read, which takes the longest of all that
// a start reads.
func TestKernelSymbolsAreReadAsFarAsTheyAreWanted(t *testing.T) {
	rest := strings.NewReader("ffffffff81000300 T first\nffffffff81000c20 T second\nffffffff81000f70 T third\n" +
		strings.Repeat("ffffffff81001000 t other\n", 1e5))
	whole := rest.Len()
	if at := kernelSymbols(rest, "second", "first"); at[0] != (symbolPlace{0xffffffff81000c20, 0xffffffff81000f70}) ||
		at[1] != (symbolPlace{0xffffffff81000300, 0xffffffff81000c20}) {
		t.Errorf("found %x", at)
	}
	if read := whole - rest.Len(); read > whole/2 {
		t.Errorf("read %d of %d bytes for two of the first symbols", read, whole)
	}
}
