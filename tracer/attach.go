package tracer

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/ebpfprof/ebpfprof/tracer/site"
)

// The cookie of a site: its probe and the turn of its link in the low half, how
// far the stack pointer has moved in the high one (bpf/call.bpf.c).
func cookie(spec uint32, turn uint8, displacement int32, known bool) uint64 {
	c := uint64(spec) | uint64(turn)<<31 | uint64(uint32(displacement)&0x7fffffff)<<32
	if !known {
		c |= 1 << 63
	}
	return c
}

// siteList is what one link attaches: file offsets and their cookies.
type siteList struct{ offsets, cookies []uint64 }

func (l *siteList) add(offset, cookie uint64) {
	l.offsets = append(l.offsets, offset)
	l.cookies = append(l.cookies, cookie)
}

// sites are the places of one set of probes, by the program that runs there.
type sites struct{ entry, stack, exit, ret siteList }

func (s *sites) count() int {
	return len(s.entry.offsets) + len(s.stack.offsets) + len(s.exit.offsets) + len(s.ret.offsets)
}

// sitesOf lists the sites of some probes of a file; base is the spec of the
// file's first probe.
func sitesOf(plan *Plan, base uint32, probes []int) *sites {
	s := &sites{}
	for _, i := range probes {
		p := &plan.Probes[i]
		spec := base + uint32(i)
		at := func(offset uint64) uint64 {
			file, _ := plan.file.FileOffset(p.Address + offset)
			return file
		}
		if p.Return {
			s.ret.add(at(p.Entry.Offset), cookie(spec, p.spec.Turn, 0, true))
		}
		for _, e := range p.Exits {
			s.exit.add(at(e.Offset), cookie(spec, p.spec.Turn, e.Displacement, e.DisplacementKnown))
		}
		entry := &s.entry
		if p.takesStack() {
			entry = &s.stack
		}
		entry.add(at(p.Entry.Offset), cookie(spec, p.spec.Turn, p.Entry.Displacement, true))
	}
	return s
}

// linkSet is a set of probes that is attached together.
type linkSet struct {
	kernel      *kernel
	exit, entry []link.Link
	sites       int
	beside      int // the process on whose CPU they are taken out
}

// attach puts probes on a file, the ends before the entries, so that no entry
// is seen whose end is not. pid 0 is every process that maps the file.
func (k *kernel) attach(path string, pid int, s *sites) (*linkSet, error) {
	file, err := link.OpenExecutable(path)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	set := &linkSet{kernel: k, sites: s.count()}
	put := func(to *[]link.Link, program string, l *siteList, ret bool) {
		if err != nil || len(l.offsets) == 0 {
			return
		}
		var links []link.Link
		links, err = k.attachProgram(file, program, l, pid, ret)
		*to = append(*to, links...)
	}
	put(&set.exit, "call_return", &s.ret, true)
	put(&set.exit, "call_exit", &s.exit, false)
	put(&set.entry, "call_entry", &s.entry, false)
	put(&set.entry, "call_entry_stack", &s.stack, false)
	if err != nil {
		set.Close()
		return nil, fmt.Errorf("attaching %d probes to %s: %w", s.count(), path, notPermitted(err))
	}
	return set, nil
}

// attachLearn counts the hits of the entries only.
func (k *kernel) attachLearn(path string, pid int, s *sites) (*linkSet, error) {
	file, err := link.OpenExecutable(path)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	entries := siteList{slices.Concat(s.entry.offsets, s.stack.offsets), slices.Concat(s.entry.cookies, s.stack.cookies)}
	links, err := k.attachProgram(file, "call_learn", &entries, pid, false)
	if err != nil {
		return nil, fmt.Errorf("attaching %d probes to %s: %w", len(s.entry.offsets), path, notPermitted(err))
	}
	return &linkSet{entry: links, sites: len(s.entry.offsets)}, nil
}

// attachLinkMap tells when the dynamic linker of a process loads a library.
func (k *kernel) attachLinkMap(path string, pid int, offset uint64) (*linkSet, error) {
	file, err := link.OpenExecutable(path)
	if err != nil {
		return nil, err
	}
	links, err := k.attachProgram(file, "link_map", &siteList{[]uint64{offset}, []uint64{0}}, pid, false)
	return &linkSet{entry: links, sites: 1}, err
}

func (k *kernel) attachProgram(file *link.Executable, program string, l *siteList, pid int, ret bool) ([]link.Link, error) {
	p := k.call.Programs[program]
	if k.multi {
		options := &link.UprobeMultiOptions{Addresses: l.offsets, Cookies: l.cookies, PID: uint32(pid)}
		var one link.Link
		var err error
		if ret {
			one, err = file.UretprobeMulti(nil, p, options)
		} else {
			one, err = file.UprobeMulti(nil, p, options)
		}
		if err != nil {
			return nil, err
		}
		return []link.Link{one}, nil
	}
	return attachEach(file, p, l, pid, ret)
}

// attachEach is the way of kernels below 6.6: a perf event a site.
func attachEach(file *link.Executable, p *ebpf.Program, l *siteList, pid int, ret bool) ([]link.Link, error) {
	links := make([]link.Link, 0, len(l.offsets))
	for i, offset := range l.offsets {
		options := &link.UprobeOptions{Address: offset, PID: pid, Cookie: l.cookies[i]}
		var one link.Link
		var err error
		if ret {
			one, err = file.Uretprobe("site", p, options)
		} else {
			one, err = file.Uprobe("site", p, options)
		}
		if err != nil {
			return links, err
		}
		links = append(links, one)
	}
	return links, nil
}

// join makes one set of two; the receiver may be nil.
func (s *linkSet) join(more *linkSet) *linkSet {
	if s == nil {
		return more
	}
	return &linkSet{kernel: s.kernel, exit: append(s.exit, more.exit...), entry: append(s.entry, more.entry...), sites: s.sites + more.sites, beside: s.beside}
}

const (
	// detachGrace is how long the exits stay after the entries are gone, at the
	// most, so that the calls under way can still be seen to end. Each exit of a
	// call that is not recorded costs the job a trap meanwhile, so they go as soon
	// as no call is open.
	detachGrace = 10 * time.Millisecond
	detachLook  = 300 * time.Microsecond
)

// Close takes the probes out, the entries first. A link's Close removes its
// sites at once and then waits out the kernel's grace periods, some 40 ms; the
// exits, which cost the job a trap each as long as they are there, do not wait
// for that.
func (s *linkSet) Close() {
	entries := make(chan struct{})
	go func() {
		near(s.beside, func() { closeAll(s.entry) })
		close(entries)
	}()
	if len(s.entry) > 0 && len(s.exit) > 0 {
		for until := time.Now().Add(detachGrace); time.Now().Before(until); {
			time.Sleep(detachLook)
			if !s.kernel.callsOpen() {
				break
			}
		}
	}
	near(s.beside, func() { closeAll(s.exit) })
	<-entries
	s.entry, s.exit = nil, nil
}

func closeAll(links []link.Link) {
	for _, l := range links {
		l.Close()
	}
}

// notPermitted marks the kernel's refusals as such.
func notPermitted(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w: %w", ErrNotPermitted, err)
	}
	return err
}

// dearestSite is the class of the dearest of the probe's sites.
func (p *PlannedProbe) dearestSite() site.Cost {
	cost := p.Entry.Cost
	for _, e := range p.Exits {
		cost = max(cost, e.Cost)
	}
	return cost
}
