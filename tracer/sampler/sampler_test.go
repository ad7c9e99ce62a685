package sampler

import (
	"reflect"
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
	kallsyms := []byte("ffffffff81000c20 T asm_exc_int3\nffffffff81000c20 t alias\nffffffff81000c60 T asm_exc_page_fault\n")
	for name, want := range map[string][2]uint64{
		"asm_exc_int3": {0xffffffff81000c20, 0xffffffff81000c60}, "exc_int3": {}, "missing": {},
	} {
		start, end := kernelSymbol(kallsyms, name)
		if (name == "asm_exc_int3" && [2]uint64{start, end} != want) || (name != "asm_exc_int3" && start != 0) {
			t.Errorf("%s is at %x..%x", name, start, end)
		}
	}
}
