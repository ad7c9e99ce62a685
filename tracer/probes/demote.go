package probes

import (
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
)

// Which groups are in slices: the detail groups, and the anchor groups that the
// budget has put there.

// makeDetail puts an anchor probe into the slices from an epoch on.
func (p *Probe) makeDetail(since uint32) {
	p.Planned.Spec.Flags |= uint16(bpf.CallSpecFlagSPEC_DETAIL)
	p.used = true
	p.SliceFrom(since)
}

// Demote takes the probes of groups out and makes detail of them, from an epoch on.
func (d sliced) Demote(groups []string, epoch uint32) error {
	s := d.s
	for _, name := range groups {
		s.demoted[name] = true
	}
	for _, f := range s.files {
		if err := d.demoteFile(f, epoch); err != nil {
			return err
		}
	}
	s.steps.probes = slices.DeleteFunc(s.steps.probes, func(p *Probe) bool { return s.demoted[p.Planned.Group.Name] })
	return nil
}

// demoteFile is Demote for the probes of one file.
func (d sliced) demoteFile(f *File, epoch uint32) error {
	s := d.s
	for i := range f.plan.Probes {
		planned := &f.plan.Probes[i]
		if !s.demoted[planned.Group.Name] || planned.Spec.Flags&uint16(bpf.CallSpecFlagSPEC_DETAIL) != 0 {
			continue
		}
		s.at(f.base + uint32(i)).makeDetail(epoch)
		if err := s.config.Kernel.SetSpec(f.base+uint32(i), &planned.Spec); err != nil {
			return fmt.Errorf("slicing an anchor group: %w", err)
		}
	}
	for name, tier := range f.anchor {
		if s.demoted[name] {
			s.config.Detaching.CloseTier(tier)
			delete(f.anchor, name)
		}
	}
	return nil
}

// LeaveStacks has the calls of groups take no stacks any more. The probes stay as they
// are, since to put in others would take the kernel seconds.
func (d sliced) LeaveStacks(groups []string) error {
	s := d.s
	for _, name := range groups {
		s.stackless[name] = true
	}
	for _, f := range s.files {
		for i := range f.plan.Probes {
			planned := &f.plan.Probes[i]
			if !s.Stackless(planned.Group.Name) || !planned.TakesStack() {
				continue
			}
			planned.LeaveStack()
			if err := s.config.Kernel.SetSpec(f.base+uint32(i), &planned.Spec); err != nil {
				return fmt.Errorf("leaving out the stacks of a group: %w", err)
			}
		}
	}
	return nil
}

// SweepScopes ends the scopes that began in a slice that is over: nobody sees
// their end any more.
func (d sliced) SweepScopes() {
	if d.s.demoted["scope"] {
		d.s.config.Decoder.Left(d.s.config.Kernel.TakeScopes(kernel.EveryScope))
	}
}
