package probes

import (
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// Late counts what comes by the hundred and has one warning for all: the libraries that the job itself generated
// while it was recorded, and the processes that had to be given probes of their own.
type Late struct {
	files, probes int
	longest       time.Duration // from when one was seen until its probes were in

	joined map[int]bool  // processes
	oldest time.Duration // how long the last of them to have its probes had run by then
}

// add counts a file whose probes are in now.
func (l *Late) add(made *plan.Plan, took time.Duration) {
	l.files++
	l.probes += len(made.Probes)
	l.longest = max(l.longest, took)
}

// join counts a process whose probes of a file are in now: one that other programs map as well, so that what a
// child inherits records nothing.
func (l *Late) join(pid int) {
	ticks, err := process.StartTicks(pid)
	if err != nil {
		return // it has ended
	}
	if l.joined == nil {
		l.joined = map[int]bool{}
	}
	l.joined[pid] = true
	l.oldest = max(l.oldest, time.Since(time.Unix(0, process.StartedNS(ticks))))
}

// Losses says what was late. It runs after the manager's last word.
func (l *Late) Losses() []event.Warning {
	return append(l.ofProcesses(), event.Warning{
		Kind: "late", Source: "generated", Count: int64(l.files),
		Detail: fmt.Sprintf("libraries that the job generated and loaded while it was recorded, with %d functions: calls from when a library "+
			"was seen until its probes were in place, %d ms at the most, are not recorded",
			l.probes, (l.longest + time.Millisecond/2).Milliseconds()),
	})
}

func (l *Late) ofProcesses() []event.Warning {
	return []event.Warning{{
		Kind: "late", Source: "processes", Count: int64(len(l.joined)),
		Detail: fmt.Sprintf("processes that began while programs outside the job mapped the same libraries, so that each has probes of its "+
			"own: calls until these were in place, in its first %d ms at the most, are not recorded", l.oldest.Milliseconds()),
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
