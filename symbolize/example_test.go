package symbolize_test

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/symbolize"
)

// Stacks are folded for flame graphs, root first.
func ExampleFold() {
	fmt.Println(symbolize.Fold([]symbolize.Frame{
		{Kind: symbolize.Native, Function: "at::_ops::addmm::call"},
		{Kind: symbolize.Python, Function: "forward", File: "model.py", Line: 12},
	}))
	// Output: forward (model.py);at::_ops::addmm::call
}
