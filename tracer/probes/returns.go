package probes

import (
	"fmt"
	"runtime"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/features"
)

// Recording without return probes. On some kernels a return probe makes a system
// call in the job, for which a seccomp filter kills it; entries and exit sites
// make none. Once a traced process has a filter there, the recording goes on
// with those: the calls of the C runtimes have a beginning, their arguments, and
// no result.

// returns says whether there are return probes.
type returns struct {
	set     *Set
	without *features.Hazard // why there are none; nil: there are
}

// ReturnHazards are those of a kernel that concern return probes alone.
func ReturnHazards(release string, can *features.Set) (hazards []features.Hazard) {
	for _, h := range features.HazardsOf(release, runtime.GOARCH, can) {
		if h.Returns {
			hazards = append(hazards, h)
		}
	}
	return hazards
}

// CheckReturns takes the return probes out of the recording if a hazard of this
// kernel concerns the process.
func (r *returns) CheckReturns(pid int) error {
	for i := range r.set.config.Hazards {
		if h := &r.set.config.Hazards[i]; r.without == nil && h.Concerns(pid) {
			return r.DropReturns(pid, h)
		}
	}
	return nil
}

// DropReturns takes them out, since a hazard concerns a process: the files that are known
// already are attached anew.
func (r *returns) DropReturns(pid int, h *features.Hazard) error {
	s := r.set
	r.without = h
	s.config.Warn(event.Warning{
		TSNS: time.Now().UnixNano(), Kind: "attach", Source: "return probes", Count: 1,
		Detail: fmt.Sprintf("pid %d: %s (%s). The recording has none: the calls of accelerator runtimes end where the next one begins, without "+
			"status or results, and allocations are not counted", pid, h.Harm, h.Source),
	})
	for _, f := range s.files {
		for _, tier := range f.tiers() {
			for _, set := range tier {
				set.CloseExits() // at once: they kill
			}
		}
	}
	for _, f := range s.files {
		if !f.plan.DropReturns() {
			continue
		}
		for i := range f.plan.Probes {
			if err := s.config.Kernel.SetSpec(f.base+uint32(i), &f.plan.Probes[i].Spec); err != nil {
				return fmt.Errorf("writing the probe table: %w", err)
			}
		}
	}
	for _, f := range s.files {
		detail := len(f.detail) > 0
		for _, tier := range f.tiers() {
			s.config.Detaching.CloseTier(tier)
		}
		if err := s.attachAnchors(f); err != nil {
			return err
		}
		if detail {
			if err := s.attach(f, f.detail, s.attachedDetail(f)); err != nil {
				return err
			}
		}
	}
	return nil
}
