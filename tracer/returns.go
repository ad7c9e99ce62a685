package tracer

import (
	"fmt"
	"runtime"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/features"
)

// Recording without return probes. On some kernels a return probe makes a system
// call in the job, for which a seccomp filter kills it; entries and exit sites
// make none. Once a traced process has a filter there, the recording goes on
// with those: the calls of the C runtimes have a beginning, their arguments, and
// no result.

// findReturnHazards keeps those of this kernel that concern return probes alone.
func (s *Session) findReturnHazards(can *features.Set) {
	release := s.options.release
	if release == "" {
		release = features.KernelRelease()
	}
	for _, h := range features.HazardsOf(release, runtime.GOARCH, can) {
		if h.Returns {
			s.returnHazards = append(s.returnHazards, h)
		}
	}
}

// checkReturns takes the return probes out of the recording if a hazard of this
// kernel concerns the process.
func (s *Session) checkReturns(pid int) error {
	if s.withoutReturns != nil {
		return nil
	}
	for i := range s.returnHazards {
		if h := &s.returnHazards[i]; h.Concerns(pid) {
			s.withoutReturns = h
			s.warn(Warning{
				TSNS: time.Now().UnixNano(), Kind: "attach", Source: "return probes", Count: 1,
				Detail: fmt.Sprintf("pid %d: %s (%s). The recording has none: the calls of accelerator runtimes end where the next one begins, without status or results, and allocations are not counted", pid, h.Harm, h.Source),
			})
			return s.dropReturns()
		}
	}
	return nil
}

// dropReturns attaches the files that are known already anew.
func (s *Session) dropReturns() error {
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
			if err := s.kernel.SetSpec(f.base+uint32(i), &f.plan.Probes[i].Spec); err != nil {
				return fmt.Errorf("writing the probe table: %w", err)
			}
		}
	}
	for _, f := range s.files {
		detail := len(f.detail) > 0
		for _, tier := range f.tiers() {
			s.detaching.CloseTier(tier)
		}
		if err := s.attachAnchors(f); err != nil {
			return err
		}
		if detail {
			if err := s.attachTier(f, f.detail, s.attachedDetail(f)); err != nil {
				return err
			}
		}
	}
	return nil
}
