package features_test

import (
	"errors"
	"fmt"

	"github.com/ebpfprof/ebpfprof/tracer/features"
)

// Before a program opens a recording, it asks whether this machine may be traced. The answer
// depends on the machine, so the example prints none.
func Example() {
	for _, check := range []func() error{features.CheckKillSwitch, features.CheckNamespaces, features.CheckPermitted} {
		switch err := check(); {
		case errors.Is(err, features.ErrNotPermitted):
			fmt.Println("run it as root:", err)
			return
		case err != nil:
			fmt.Println("not here:", err)
			return
		}
	}
	if err := features.Probe().Check(); errors.Is(err, features.ErrUnsupported) {
		fmt.Println("the kernel is too old:", err)
	}
}

// Harm that a kernel is known to do with probes goes by its release and architecture.
func ExampleHazardsOf() {
	for _, hazard := range features.HazardsOf("6.9.0", "arm64", &features.Set{}) {
		fmt.Println(hazard.Name+":", hazard.Harm)
	}
}
