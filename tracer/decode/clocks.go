package decode

import (
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/progress"
)

// Clocks tell the governor how far the job has come: the decoder winds them, the manager
// reads them, and each has a lock for that.
type Clocks struct {
	Nodes *progress.NodeClock
	Steps *progress.StepClock
}

func newClocks() Clocks { return Clocks{progress.NewNodeClock(), progress.NewStepClock()} }

// saw notes what tells where in its training step a process was, of calls that are
// recorded in every step.
func (c *Clocks) saw(s *event.Span, f *spec.Function) {
	switch {
	case s.DurationNS < 0:
	case f.Step:
		c.Steps.Saw(s.PID, s.StartNS, s.StartNS+s.DurationNS)
	case f.Text != spec.NoText && strings.HasPrefix(s.Call.Name, "Optimizer."):
		c.Steps.Mark(s.PID, s.StartNS, s.StartNS+s.DurationNS)
	case f.Text != spec.NoText && strings.HasPrefix(s.Call.Name, "enumerate(DataLoader)#"):
		c.Steps.Load(s.PID, s.StartNS)
	}
}
