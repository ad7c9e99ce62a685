package demangle_test

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/symbolize/demangle"
)

// A symbol of C++ is shown without its parameters, as people speak of it.
func ExampleShort() {
	fmt.Println(demangle.Short("_ZN2at4_ops5addmm4callERKNS_6TensorES4_S4_RKN3c106ScalarES8_"))
	// Output: at::_ops::addmm::call
}
