// Package uprobe puts BPF programs on places of a file. It owns the two ways in which
// a kernel does that: one uprobe.multi link for all places (Linux 6.6), or a perf event
// a place.
//
// The package is no part of the public API: it may change with any version.
package uprobe

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
)

// Sites are file offsets and the attach cookies that programs find there, one each.
// Counters are the file offsets of counts that the kernel raises while a site is probed, 0 where a site has none; nil if
// none has.
type Sites struct{ Offsets, Cookies, Counters []uint64 }

// Count gives the site that is added next a count.
func (s *Sites) Count(offset uint64) {
	s.Counters = append(s.Counters, make([]uint64, len(s.Offsets)-len(s.Counters))...)
	s.Counters = append(s.Counters, offset)
}

// counters are as many as there are sites, or none.
func (s *Sites) counters() []uint64 {
	if len(s.Counters) == 0 {
		return nil
	}
	return append(s.Counters, make([]uint64, len(s.Offsets)-len(s.Counters))...)
}

// Add puts another site behind those there are.
func (s *Sites) Add(offset, cookie uint64) {
	s.Offsets = append(s.Offsets, offset)
	s.Cookies = append(s.Cookies, cookie)
}

// How says how sites are probed.
type How struct {
	PID    int  // the process; 0 is every one that maps the file
	Return bool // where the function returns, and not where it is entered
	Multi  bool // by one uprobe.multi link, and not a perf event a site
}

// HaveMulti returns nil where the kernel has uprobe.multi links, else an error that
// wraps ebpf.ErrNotSupported.
func HaveMulti() error { return features.HaveBPFLinkUprobeMulti() }

// Fit makes probe programs of a specification fit for perf events, which take none
// that says it is for uprobe.multi.
func Fit(spec *ebpf.CollectionSpec) {
	for _, p := range spec.Programs {
		if p.AttachType == ebpf.AttachTraceUprobeMulti {
			p.AttachType = ebpf.AttachNone
		}
	}
}

// File is one that has sites.
type File struct {
	path       string
	executable *link.Executable
}

// Open opens an ELF file; an error says that it is none, or is not there.
func Open(path string) (*File, error) {
	executable, err := link.OpenExecutable(path)
	if err != nil {
		return nil, err
	}
	return &File{path, executable}, nil
}

// attacher puts a program on sites of the file at a path.
type attacher = func(path string, program *ebpf.Program, sites Sites, how How) ([]link.Link, error)

// Attach puts a program on sites of a file. With an error it returns the links that
// were made before it: they are the caller's to close. A tracer that is killed meanwhile
// leaves no probe: see sheltered.
func Attach(file *File, program *ebpf.Program, sites Sites, how How) ([]link.Link, error) {
	if attach := another(); attach != nil {
		return attach(file.path, program, sites, how)
	}
	if !how.Multi {
		return attachEach(file.executable, program, sites, how)
	}
	one, err := attachAll(file.path, program, sites, how)
	if err != nil {
		return nil, err
	}
	return []link.Link{shelteredLink{one}}, nil
}

// attachEach is the way of kernels below 6.6: a perf event a site. Of one site nothing
// is left when the tracer is killed, since nothing of it has to be undone, unless several
// processes have the file.
func attachEach(file *link.Executable, program *ebpf.Program, sites Sites, how How) ([]link.Link, error) {
	links, counters := make([]link.Link, 0, len(sites.Offsets)), sites.counters()
	attach := file.Uprobe
	if how.Return {
		attach = file.Uretprobe
	}
	for i, offset := range sites.Offsets {
		options := &link.UprobeOptions{Address: offset, PID: how.PID, Cookie: sites.Cookies[i]}
		if counters != nil {
			options.RefCtrOffset = counters[i]
		}
		one, err := attach("site", program, options)
		if err != nil {
			return links, fmt.Errorf("at file offset %#x: %w", offset, err)
		}
		links = append(links, shelteredLink{one})
	}
	return links, nil
}
