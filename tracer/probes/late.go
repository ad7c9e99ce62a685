package probes

import (
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
)

// Late counts the libraries that the job itself generated while it was recorded: a
// compiler makes them by the hundred, and one warning speaks for all.
type Late struct {
	files, probes int
	longest       time.Duration // from when one was seen until its probes were in
}

// add counts a file whose probes are in now.
func (l *Late) add(made *plan.Plan, took time.Duration) {
	l.files++
	l.probes += len(made.Probes)
	l.longest = max(l.longest, took)
}

// Losses says what was late. It runs after the manager's last word.
func (l *Late) Losses() []event.Warning {
	return []event.Warning{{
		Kind: "late", Source: "generated", Count: int64(l.files),
		Detail: fmt.Sprintf("libraries that the job generated and loaded while it was recorded, with %d functions: calls from when a library "+
			"was seen until its probes were in place, %d ms at the most, are not recorded",
			l.probes, (l.longest + time.Millisecond/2).Milliseconds()),
	}}
}

// generatedCode reports whether all that is probed in a file is what a compiler of the
// job's made.
func generatedCode(made *plan.Plan) bool {
	for i := range made.Probes {
		if made.Probes[i].Function.Name != spec.FromCaller {
			return false
		}
	}
	return len(made.Probes) > 0
}
