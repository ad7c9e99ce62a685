package tensor

import (
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// Where the arguments are was read from the code that makes these calls: PyTorch's own
// of 1.13.1 (Debian) and 2.15.0 (PyPI), x86-64. Words from 8 on are of the stack.
func TestArgumentsAreWhereTheABIPutsThem(t *testing.T) {
	amd64 := ABI{Machine: elf.MachineX86_64}
	for _, c := range []struct {
		operator, symbol, returns string
		abi                       ABI
		places                    []uint8
	}{
		{"aten::addmm", "_ZN2at4_ops5addmm4callERKNS_6TensorES4_S4_RKN3c106ScalarES8_", "Tensor", amd64, []uint8{1, 2, 3}},
		{"aten::add_", "_ZN2at4_ops11add__Tensor4callERNS_6TensorERKS2_RKN3c106ScalarE", "Tensor(a!)", amd64, []uint8{0, 1}},
		{"aten::addmm", "_ZN2at4_ops5addmm4callERKNS_6TensorES4_S4_RKN3c106ScalarES8_", "Tensor", ABI{Machine: elf.MachineARM64},
			[]uint8{0, 1, 2}},
		// input, weight, bias, stride (r8, r9), padding, dilation, transposed, output_padding, groups
		{"aten::convolution", "_ZN2at4_ops11convolution4callERKNS_6TensorES4_RKSt8optionalIS2_EN3c108ArrayRefINS9_6SymIntEEESC_SC_bSC_SB_",
			"Tensor", amd64,
			[]uint8{1, 2, 3, 4, 8, 10, 12, 13, 15}},
		// The bias's sizes take three words of the stack since std::optional, r8 and r9 before.
		{"aten::convolution_backward",
			"_ZN2at4_ops20convolution_backward4callERKNS_6TensorES4_S4_N3c1016OptionalArrayRefINS5_6SymIntEEENS5_8ArrayRefIS7_EESA_SA_bSA_S7_St5arrayIbLm3EE",
			"(Tensor, Tensor, Tensor)", amd64, []uint8{1, 2, 3, 4, 11, 13, 15, 16, 18, 19}},
		{"aten::convolution_backward",
			"_ZN2at4_ops20convolution_backward4callERKNS_6TensorES4_S4_N3c1016OptionalArrayRefINS5_6SymIntEEENS5_8ArrayRefIlEESA_SA_bSA_lSt5arrayIbLm3EE",
			"(Tensor, Tensor, Tensor)", ABI{Machine: elf.MachineX86_64, OldOptional: true}, []uint8{1, 2, 3, 8, 10, 12, 14, 15, 17, 18}},
	} {
		o, ok := Parse(c.operator, c.symbol, c.returns, c.abi)
		if !ok {
			t.Errorf("%s: not parsed", c.symbol)
			continue
		}
		var places []uint8
		for _, capture := range o.Captures {
			places = append(places, capture.Index)
		}
		if !slices.Equal(places, c.places) {
			t.Errorf("%s: at %v, want %v", c.operator, places, c.places)
		}
	}
}

func TestWhatTheSchemaDoesNotTellIsLeftAlone(t *testing.T) {
	symbol := "_ZN2at4_ops5addmm4callERKNS_6TensorES4_S4_RKN3c106ScalarES8_"
	for _, returns := range []string{"", "(Tensor(a!), Tensor(b!))", "Stream", "Storage"} {
		if _, ok := Parse("aten::addmm", symbol, returns, ABI{Machine: elf.MachineX86_64}); ok {
			t.Errorf("a result of %q was taken for something that is known", returns)
		}
	}
	for _, symbol := range []string{"", "_ZN2at4_ops5addmm4callE", "_ZN2at4_ops1x4callEN3c106StreamERKNS_6TensorE", "_ZN2at4_ops1x4callEv"} {
		if o, ok := Parse("aten::x", symbol, "Tensor", ABI{Machine: elf.MachineX86_64}); ok {
			t.Errorf("%q: %+v", symbol, o)
		}
	}
}
