package decode

import (
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
)

// SampledWait is a thread that stood at a look.
type SampledWait struct {
	TaskRegisters bpf.TasksTaskRegisters
	Stack         *stacks.Standing // nil: none was taken
}

// SampledWaits makes a sample of each thread that stood at a look, atNS by CLOCK_MONOTONIC. It
// stands for the time since the look before.
func (d *Decoder) SampledWaits(atNS int64, weight time.Duration, waiting []SampledWait) {
	s := d.samples
	for i := range waiting {
		r := &waiting[i].TaskRegisters
		row := event.Sample{
			TSNS: atNS + s.offsetNS, PID: int32(r.Start.Tgid), TID: int32(r.Start.Tid), State: event.OffCPU, Cause: event.CauseFault,
			WeightNS: weight.Nanoseconds(),
		}
		switch {
		case r.Ready != 0:
			row.Cause, row.ReadyNS = event.CausePreempted, row.WeightNS
		case threadState(r.State) == event.ThreadStopped, threadState(r.State) == event.ThreadTraced:
			row.Cause = event.CauseStopped
		case r.Syscall >= 0:
			row.Cause, row.Syscall = event.CauseSyscall, syscallName(r.Syscall)
		}
		if t := waiting[i].Stack; t != nil {
			row.StackID = s.rows.Stacks.AddStanding(t)
		}
		s.rows.Batch.Sample(row)
		s.last.saw(&row)
		s.threads.saw(row.PID, row.TID, row.TSNS)
	}
}
