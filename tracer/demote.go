package tracer

import (
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
)

// Which groups are in slices: the detail groups, and the anchor groups that the
// budget has put there.

// tier is when a group's probes are in.
func (s *Session) tier(group *catalog.Group) catalog.Tier {
	if s.demoted[group.Name] {
		return catalog.Detail
	}
	return group.Tier
}

// demote takes the probes of groups out and makes detail of them, from an epoch on.
func (s *Session) demote(groups []string, epoch uint32) error {
	for _, name := range groups {
		s.demoted[name] = true
	}
	for _, f := range s.files {
		if err := s.demoteFile(f, epoch); err != nil {
			return err
		}
	}
	s.steps = slices.DeleteFunc(s.steps, func(p *probe) bool { return s.demoted[p.Planned.Group.Name] })
	return nil
}

// demoteFile is demote for the probes of one file.
func (s *Session) demoteFile(f *tracedFile, epoch uint32) error {
	for i := range f.plan.Probes {
		planned := &f.plan.Probes[i]
		if !s.demoted[planned.Group.Name] || planned.Spec.Flags&uint16(bpf.CallSpecFlagSPEC_DETAIL) != 0 {
			continue
		}
		s.probes.at(f.base + uint32(i)).makeDetail(epoch)
		if err := s.kernel.SetSpec(f.base+uint32(i), &planned.Spec); err != nil {
			return fmt.Errorf("slicing an anchor group: %w", err)
		}
	}
	for name, tier := range f.anchor {
		if s.demoted[name] {
			s.detaching.CloseTier(tier)
			delete(f.anchor, name)
		}
	}
	return nil
}

// leaveStacks has the calls of groups take no stacks any more. The probes stay as they
// are, since to put in others would take the kernel seconds.
func leaveStacks(s *Session, groups []string) error {
	for _, name := range groups {
		s.chosen.stackless[name] = true
	}
	for _, f := range s.files {
		for i := range f.plan.Probes {
			planned := &f.plan.Probes[i]
			if !s.chosen.stackless[planned.Group.Name] || !planned.TakesStack() {
				continue
			}
			planned.LeaveStack()
			if err := s.kernel.SetSpec(f.base+uint32(i), &planned.Spec); err != nil {
				return fmt.Errorf("leaving out the stacks of a group: %w", err)
			}
		}
	}
	return nil
}

// makeDetail puts an anchor probe into the slices from an epoch on.
func (p *probe) makeDetail(since uint32) {
	p.Planned.Spec.Flags |= uint16(bpf.CallSpecFlagSPEC_DETAIL)
	p.used = true
	p.SliceFrom(since)
}

// sweepScopes ends the scopes that began in a slice that is over: nobody sees
// their end any more.
func (s *Session) sweepScopes() {
	if !s.demoted["scope"] {
		return
	}
	s.leaveScopes(s.kernel.TakeScopes(kernel.EveryScope))
}
