package doctor

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/tracer/counter"
)

// counterSources looks for the machine's counters.
func counterSources() []counter.Availability {
	sampler := counter.Open(counter.Options{})
	defer sampler.Close()
	return sampler.Available()
}

// counterChecks say which of the machine's counters can be recorded.
func counterChecks() []check {
	var checks []check
	for _, a := range counterSources() {
		k := check{"counters: " + a.Source, stateOK, a.What}
		if a.Err != nil {
			k.State, k.Why = stateInfo, fmt.Sprintf("%s: not recorded: %v", a.What, a.Err)
		}
		checks = append(checks, k)
	}
	return checks
}
