package spec_test

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// A group of a catalog describes functions of a library: what a call of each becomes, and
// what is captured of it. Here the second argument is how many bytes are asked for, and the
// first is where the call leaves the address.
func Example() {
	group := spec.Group{
		Name: "runtime-memory", Tier: spec.Anchor,
		Functions: []spec.Function{{
			Label: "runtimeMalloc", Layer: "runtime", Category: "alloc", Action: spec.Span, End: spec.Return,
			Values: []spec.Value{spec.Arg(spec.FieldBytes, 1), spec.OutArg(spec.FieldAddress, 0)},
		}},
	}
	for _, f := range group.Functions {
		fmt.Println(f.Label, "ends with a return:", f.End == spec.Return, "captures", len(f.Values))
	}
	// Output: runtimeMalloc ends with a return: true captures 2
}
