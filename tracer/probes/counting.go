package probes

import (
	"github.com/ebpfprof/ebpfprof/tracer/budget"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/uprobe"
)

// counting is a probe that counts the calls of a function without recording them.
type counting struct {
	kernel *kernel.Programs
	links  map[int]*kernel.Links
}

// CountOnly counts the calls of a probe from now on, in the kernel's Reference. It returns nil
// when no process maps its file any more.
func (d sliced) CountOnly(index uint32) (budget.Counting, error) {
	p, k := d.s.at(index), d.s.config.Kernel
	if p.file.source == nil {
		return nil, nil
	}
	if err := p.file.source.Verify([]plan.Probe{*p.Planned}, []int{0}); err != nil {
		d.s.dropChanged(p.file, err)
		return nil, nil
	}
	c := &counting{kernel: k, links: map[int]*kernel.Links{}}
	offset, _ := p.file.plan.ELF.FileOffset(p.Planned.Address + p.Planned.Entry.Offset)
	where := &kernel.Sites{Entry: uprobe.Sites{Offsets: []uint64{offset}, Cookies: []uint64{kernel.Cookie(k.Reference(), 0, 0, true)}}}
	for _, pid := range p.file.pids() {
		set, err := k.AttachLearn(p.file.source.Path(), pid, where)
		if err != nil {
			c.Close()
			if vanished(err) {
				return nil, nil
			}
			return nil, err
		}
		c.links[pid] = set
	}
	return c, nil
}

// Calls is how many there were.
func (c *counting) Calls() (uint64, bool) { return c.kernel.Calls(c.kernel.Reference()) }

// Close takes the probe out.
func (c *counting) Close() {
	for _, set := range c.links {
		set.Close()
	}
}
