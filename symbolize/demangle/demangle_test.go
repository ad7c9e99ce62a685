package demangle

import (
	"strings"
	"testing"
)

func TestDemangledNamesAreShort(t *testing.T) {
	for name, want := range map[string]string{
		"_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE":             "at::_ops::add_Tensor::call",
		"_ZNSt6vectorIN2at6TensorESaIS1_EE9push_backERKS1_":                        "std::vector::push_back",
		"_ZN5torch8autograd6Engine11thread_mainERKSt10shared_ptrI9GraphTaskE.cold": "torch::autograd::Engine::thread_main",
		"_RNvC6_123foo3bar":       "123foo::bar",
		"PyEval_EvalFrameDefault": "PyEval_EvalFrameDefault",
		"_Zgarbage":               "_Zgarbage",
		"":                        "",
	} {
		if got := Short(name); got != want {
			t.Errorf("Short(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestLongNamesStayMangled(t *testing.T) {
	long := "_Z1f" + strings.Repeat("P", 60_000) + "i"
	if got := Short(long); len(got) > 1<<maxShort || !strings.HasPrefix(got, "_Z1f") {
		t.Errorf("%d characters: %.20s", len(got), got)
	}
	if got := Full(long); len(got) > 1<<maxFull || !strings.HasPrefix(got, "_Z1f") {
		t.Errorf("%d characters: %.20s", len(got), got)
	}
	if name, ok := Type(strings.Repeat("N1a", 30_000)); ok {
		t.Errorf("a type of 90,000 characters is %.20s", name)
	}
}

func TestDemangledNamesFitALabel(t *testing.T) {
	long := "_ZN2at6native12_GLOBAL__N_124structured_addmm_out_cpu4implERKNS_6TensorES5_S5_RKN3c106ScalarES8_S5_"
	if got := Short(long); strings.Contains(got, "Tensor") || !strings.HasPrefix(got, "at::native::") {
		t.Errorf("%q", got)
	}
}

// FuzzDemangle: no name makes the demangler panic, or the result longer than it may be.
func FuzzDemangle(f *testing.F) {
	for _, name := range []string{"_ZN2at4_ops5addmm4callERKNS_6TensorE", "_ZTVN5torch8autograd4NodeE", "_RNvC7mycrate3foo", "_Z1fIPPPiEvv"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if short := Short(name); len(short) > max(1<<maxShort, len(name)) {
			t.Fatalf("%d characters of %d", len(short), len(name))
		}
		if full := Full(name); len(full) > max(1<<maxFull, len(name)) {
			t.Fatalf("%d characters of %d", len(full), len(name))
		}
	})
}
