package torch

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testelf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf/elftest"
)

func TestVTableClassIsTheNodeNameOfTheProfiler(t *testing.T) {
	for symbol, want := range map[string]string{
		"_ZTVN5torch8autograd9generated14AddmmBackward0E": "AddmmBackward0",
		"_ZTVN5torch8autograd14AccumulateGradE":           "torch::autograd::AccumulateGrad",
		"_ZTVN5torch8autograd9GraphRootE":                 "torch::autograd::GraphRoot",
		"_ZTVN5torch8autograd10CopySlicesE":               "torch::autograd::CopySlices",
		"_ZTVN5torch8autograd6PyNodeE":                    "torch::autograd::PyNode",
		"_ZTVN5torch8autograd7CppNodeI3FooEE":             "torch::autograd::CppNode<Foo>",
		"_ZTV3Foo":                                        "Foo",
		"_ZTVN4c10d7Reducer8autogradE":                    "c10d::Reducer::autograd",
		"_ZTVN5torch12_GLOBAL__N_13FooE":                  "torch::(anonymous namespace)::Foo",
		"_ZTSN5torch8autograd9generated14AddmmBackward0E": "",
		"_ZTV":    "",
		"_ZTVN":   "",
		"_ZTV9Fo": "",
	} {
		class, ok := VTableClass(symbol)
		if class != want || ok != (want != "") {
			t.Errorf("VTableClass(%q) = %q, %v, want %q", symbol, class, ok, want)
		}
	}
}

func TestEveryAutogradVTableHasAClass(t *testing.T) {
	for _, path := range testelf.Libtorchs(t) {
		e := elftest.Open(t, path)
		generated := 0
		for _, s := range e.ObjectsWithPrefix("_ZTVN5torch8autograd") {
			class, ok := VTableClass(s.Name)
			if !ok {
				t.Errorf("%s: no class for %s", path, s.Name)
			}
			if ok && class[0] != 't' {
				generated++
			}
		}
		if generated < 500 {
			t.Errorf("%s: %d generated autograd nodes", path, generated)
		}
		t.Logf("%s: %d generated autograd nodes", testelf.ShortName(path), generated)
	}
}
