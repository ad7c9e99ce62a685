package tracer

import (
	"fmt"
	"runtime"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
)

// Recording without return probes. On some kernels a return probe makes a system
// call in the job, for which a seccomp filter kills it; entries and exit sites
// make none. Once a traced process has a filter there, the recording goes on
// with those: the calls of the C runtimes have a beginning, their arguments, and
// no result.

// findReturnHazards keeps those of this kernel that concern return probes alone.
func (s *Session) findReturnHazards(features *Features) {
	release := s.options.release
	if release == "" {
		release = kernelRelease()
	}
	for _, h := range hazardsOf(release, runtime.GOARCH, features) {
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
				closeAll(set.exit) // at once: they kill
				set.exit = nil
			}
		}
	}
	for _, f := range s.files {
		if !f.plan.dropReturns() {
			continue
		}
		for i := range f.plan.Probes {
			if err := s.kernel.setSpec(f.base+uint32(i), &f.plan.Probes[i].spec); err != nil {
				return fmt.Errorf("writing the probe table: %w", err)
			}
		}
	}
	for _, f := range s.files {
		detail := len(f.detail) > 0
		for _, tier := range f.tiers() {
			s.detaching.closeTier(tier)
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

// dropReturns plans as if nothing could have a return probe, and reports whether
// anything had one.
func (p *Plan) dropReturns() (any bool) {
	for i := range p.Probes {
		if probe := &p.Probes[i]; probe.Return {
			probe.Return, probe.ExitErr, any = false, errNoReturns, true
			probe.spec.Flags &^= uint16(bpf.CallSpecFlagSPEC_HAS_RETURN)
		}
	}
	return any
}
