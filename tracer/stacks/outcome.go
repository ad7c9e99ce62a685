package stacks

import (
	"strings"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/python"
	"github.com/ebpfprof/ebpfprof/tracer/unwinding"
)

// stackStatus says in the words of stack.status how complete a stack is: the
// names of the walks' outcomes where they did not reach the thread's start.
func stackStatus(native unwinding.Outcome, interpreter python.Outcome) string {
	var reasons []string
	if native != unwinding.Outcome(bpf.SampleNativeOutcomeNATIVE_END) {
		reasons = append(reasons, native.String())
	}
	if !interpreter.Whole() {
		reasons = append(reasons, interpreter.Name())
	}
	if len(reasons) == 0 {
		return event.StackComplete
	}
	return strings.Join(reasons, ",")
}

// StatusDetail is a stack's status in a sentence.
func StatusDetail(status string) string {
	var details []string
	for _, reason := range strings.Split(status, ",") {
		for _, o := range unwinding.Outcomes {
			if o.Name == reason {
				details = append(details, o.Detail)
			}
		}
		for _, o := range python.Outcomes {
			if o.Name == reason {
				details = append(details, o.Detail)
			}
		}
	}
	return "samples and spans whose stack ends early: " + strings.Join(details, "; ")
}
