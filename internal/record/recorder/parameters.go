package recorder

import (
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/redact"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/budget"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// commandLine is a command with its flags as a shell takes it.
func commandLine(args []string, redacted bool) string {
	if redacted {
		args = redact.CommandLine(args)
	}
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = shellWord(arg)
	}
	return strings.Join(words, " ")
}

// parameters are what the flags came to, defaults included.
func (r *recorder) parameters() event.Parameters {
	o := r.options
	p := event.Parameters{
		DurationNS: unlessZero(r.duration.Nanoseconds()), Follow: &o.Follow, Probe: o.Filter.Probe.String(), Exclude: o.Filter.Exclude.String(),
		FrequencyHz: unlessZero(int64(o.Frequency)), OffCPUNS: unlessZero(o.OffCPU.Nanoseconds()), MaxFrames: int64(o.MaxFrames),
		VerifyStacks: int64(o.VerifyStacks), BufferBytes: int64(o.BufferBytes), CountersNS: unlessZero(o.Counters.Nanoseconds()),
		RotateNS: r.rotate.Nanoseconds(),
	}
	if percent := o.Budget * 100; percent > 0 {
		p.Budget = &percent
	}
	if o.PerfEvents {
		p.AttachWith = "perf"
	}
	if r.rotate <= 0 {
		p.RotateNS = output.RotateEvery.Nanoseconds()
	}
	return p
}

func unlessZero(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// measured notes what the recording has cost its job.
func (r *recorder) measured(to *event.Recording, cost *budget.Cost) {
	if cost == nil {
		return
	}
	hits, overhead, percent := int64(cost.Hits), cost.Estimated.Nanoseconds(), 100*cost.Share
	to.Hits, to.OverheadNS, to.OverheadPercent = &hits, &overhead, &percent
	if cost.Whole {
		to.Cost = &cost.Parts
	}
	if r.options.Budget > 0 {
		if to.BudgetRule = "budget"; cost.Exceeded {
			to.BudgetRule = "two_steps"
		}
	}
}
