package kernel

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf/link"

	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/uprobe"
)

// Cookie is a site's: its probe and the turn of its link in the low half, how
// far the stack pointer has moved in the high one, where it is known (bpf/call.bpf.c).
func Cookie(spec uint32, turn uint8, displacement int32, known bool) uint64 {
	c := uint64(spec) | uint64(turn)<<31 | uint64(uint32(displacement)&0x7fffffff)<<32
	if !known {
		c |= 1 << 63
	}
	return c
}

// EntryCookie is the cookie of an entry. Where the call ends what a mark began the clock is
// read first.
func EntryCookie(spec uint32, turn uint8, displacement int32, ends bool) uint64 {
	return Cookie(spec, turn, displacement, !ends)
}

// Sites are the places of one set of probes, by the program that runs there.
type Sites struct{ Entry, Line, Stack, Exit, Ret uprobe.Sites }

func (s *Sites) Count() int {
	return len(s.Entry.Offsets) + len(s.Line.Offsets) + len(s.Stack.Offsets) + len(s.Exit.Offsets) + len(s.Ret.Offsets)
}

// Links is a set of probes that is attached together.
type Links struct {
	open        *openCalls
	counts      *counts
	exit, entry []link.Link
	sites       int
	beside      int // the process on whose CPU they are taken out
}

// CloseExits takes the ends out at once.
func (s *Links) CloseExits() {
	closeAll(s.exit)
	s.exit = nil
}

// Sites is at how many places there is a probe.
func (s *Links) Sites() int { return s.sites }

// attacher puts the programs at places of files.
type attacher struct {
	programs *callPrograms
	multi    bool         // uprobe.multi links, else one perf uprobe a site
	links    atomic.Int64 // of probes, that are not out
	open     *openCalls
	counts   *counts
	removal  removal
	locks    locks
}

// Attach puts probes on a file, the ends before the entries, so that no entry
// is seen whose end is not. pid 0 is every process that maps the file; the one that
// runs beside is stalled least.
func (k *attacher) Attach(path string, pid, beside int, s *Sites) (set *Links, err error) {
	if err := k.ready(s); err != nil {
		return nil, err
	}
	onCPUOf(beside, func() { set, err = k.attachHere(path, pid, s) })
	if set != nil {
		set.beside = beside
	}
	return set, err
}

func (k *attacher) attachHere(path string, pid int, s *Sites) (*Links, error) {
	file, err := uprobe.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	set := &Links{open: k.open, counts: k.counts, sites: s.Count()}
	put := func(to *[]link.Link, program string, l *uprobe.Sites, ret bool) {
		if err != nil || len(l.Offsets) == 0 {
			return
		}
		var links []link.Link
		links, err = k.attachProgram(file, program, l, pid, ret)
		*to = append(*to, links...)
	}
	put(&set.exit, "call_return", &s.Ret, true)
	put(&set.exit, "call_exit", &s.Exit, false)
	// Of several programs at one place the kernel runs the last attached first
	// (consumer_add in kernel/events/uprobes.c). What is only noticed of a call, without a
	// span of its own, must run before its span begins: after it, the second entry at the
	// same stack pointer would say that the call was left.
	put(&set.entry, "call_entry_stack", &s.Stack, false)
	put(&set.entry, "call_entry_line", &s.Line, false)
	put(&set.entry, "call_entry", &s.Entry, false)
	if err != nil {
		set.Close()
		return nil, fmt.Errorf("attaching %d probes to %s: %w", s.Count(), path, features.NotPermitted(err))
	}
	return set, nil
}

// AttachLearn counts the hits of the entries only.
func (k *attacher) AttachLearn(path string, pid int, s *Sites) (*Links, error) {
	file, err := uprobe.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	entries := uprobe.Sites{
		Offsets: slices.Concat(s.Entry.Offsets, s.Line.Offsets, s.Stack.Offsets),
		Cookies: slices.Concat(s.Entry.Cookies, s.Line.Cookies, s.Stack.Cookies),
	}
	links, err := k.attachProgram(file, "call_learn", &entries, pid, false)
	if err != nil {
		return nil, fmt.Errorf("attaching %d probes to %s: %w", len(entries.Offsets), path, features.NotPermitted(err))
	}
	return &Links{counts: k.counts, entry: links, sites: len(entries.Offsets)}, nil
}

// AttachLinkMap tells when the dynamic linker of a process loads a library.
func (k *attacher) AttachLinkMap(path string, pid int, offset uint64) (*Links, error) {
	file, err := uprobe.Open(path)
	if err != nil {
		return nil, err
	}
	links, err := k.attachProgram(file, "link_map", &uprobe.Sites{Offsets: []uint64{offset}, Cookies: []uint64{0}}, pid, false)
	return &Links{counts: k.counts, entry: links, sites: 1}, err
}

func (k *attacher) attachProgram(file *uprobe.File, program string, l *uprobe.Sites, pid int, ret bool) ([]link.Link, error) {
	p, err := k.programs.program(program)
	if err != nil {
		return nil, err
	}
	if err := k.locks.check(); err != nil {
		return nil, err
	}
	links, err := uprobe.Attach(file, p, *l, uprobe.How{PID: pid, Return: ret, Multi: k.multi})
	for i, one := range links {
		links[i] = countedLink{one, &k.links, uint32(l.Cookies[i]) &^ (1 << 31)}
	}
	k.links.Add(int64(len(links)))
	return links, err
}

// Join makes one set of two; the receiver may be nil.
func (s *Links) Join(more *Links) *Links {
	if s == nil {
		return more
	}
	return &Links{open: s.open, counts: s.counts, exit: append(s.exit, more.exit...), entry: append(s.entry, more.entry...),
		sites: s.sites + more.sites, beside: s.beside}
}

const (
	// detachGrace is how long the exits stay after the entries are gone, at the
	// most, so that the calls under way can still be seen to end. Each exit of a
	// call that is not recorded costs the job a trap meanwhile, so they go as soon
	// as no call is open.
	detachGrace = 10 * time.Millisecond
	detachLook  = 300 * time.Microsecond
)

// Close takes the probes out, the entries first. The exits, which cost the job a trap
// each as long as they are there, do not wait for the kernel to let go of the entries.
func (s *Links) Close() {
	busiestFirst(s.counts, s.entry, s.exit)
	var out removed
	onCPUOf(s.beside, func() { out.remove(s.entry) })
	if len(s.entry) > 0 && len(s.exit) > 0 {
		for until := time.Now().Add(detachGrace); s.open.callsOpen() && time.Now().Before(until); {
			time.Sleep(detachLook)
		}
	}
	onCPUOf(s.beside, func() { out.remove(s.exit) })
	out.wait(0)
	s.entry, s.exit = nil, nil
}

// closeAll takes links out and returns when the kernel has let go of them.
func closeAll(links []link.Link) {
	var out removed
	out.remove(links)
	out.wait(0)
}

// removed are links whose sites are out and that the kernel has not let go of.
type removed []func() error

// remove takes out the sites of links, one link after the other, while the kernel's grace
// periods of those before them, some 40 ms, go by.
func (r *removed) remove(links []link.Link) {
	for _, l := range links {
		*r = append(*r, l.(countedLink).remove())
		r.wait(mostRemoved)
	}
}

// mostRemoved bounds the links that the kernel has not let go of: each is a process.
const mostRemoved = 32

// wait waits for the oldest links until only so many are left.
func (r *removed) wait(left int) {
	for ; len(*r) > left; *r = (*r)[1:] {
		(*r)[0]()
	}
}

// CloseIfAny is Close of a set that may be nil.
func (s *Links) CloseIfAny() {
	if s != nil {
		s.Close()
	}
}
