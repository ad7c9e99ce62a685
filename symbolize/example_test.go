package symbolize_test

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/symbolize"
)

// A symbol of C++ is shown without its parameters, as people speak of it.
func ExampleDemangle() {
	fmt.Println(symbolize.Demangle("_ZN2at4_ops5addmm4callERKNS_6TensorES4_S4_RKN3c106ScalarES8_"))
	// Output: at::_ops::addmm::call
}

// Stacks are folded for flame graphs, root first.
func ExampleFold() {
	fmt.Println(symbolize.Fold([]symbolize.Frame{
		{Kind: symbolize.Native, Function: "at::_ops::addmm::call"},
		{Kind: symbolize.Python, Function: "forward", File: "model.py", Line: 12},
	}))
	// Output: forward (model.py);at::_ops::addmm::call
}
