package probes

import (
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
)

// SitesOf lists the sites of some probes of a file; base is the spec of the
// file's first probe.
func SitesOf(plan *plan.Plan, base uint32, probes []int) *kernel.Sites {
	s := &kernel.Sites{}
	for _, i := range probes {
		p := &plan.Probes[i]
		spec := base + uint32(i)
		at := func(offset uint64) uint64 {
			file, _ := plan.ELF.FileOffset(p.Address + offset)
			return file
		}
		if p.Return {
			s.Ret.Add(at(p.Entry.Offset), kernel.Cookie(spec, p.Spec.Turn, 0, true))
		}
		for _, e := range p.Exits {
			s.Exit.Add(at(e.Offset), kernel.Cookie(spec, p.Spec.Turn, e.Displacement, e.DisplacementKnown))
		}
		entry := &s.Entry
		switch {
		case p.TakesStack():
			entry = &s.Stack
		case p.TakesLine():
			entry = &s.Line
		}
		if p.Counter != 0 {
			entry.Count(p.Counter)
		}
		entry.Add(at(p.Entry.Offset), kernel.EntryCookie(spec, p.Spec.Turn, p.Entry.Displacement, p.Function.SinceMark))
	}
	return s
}
