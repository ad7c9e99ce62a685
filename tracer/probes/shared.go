package probes

import (
	"errors"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// sharing are the files with one link for all processes that map them, for as long as those
// are the job's processes.
type sharing struct {
	set     *Set
	foreign uint64 // foreign hits at the last look
}

// onlyOurs reports whether no process outside the job maps a file.
func (h *sharing) onlyOurs(id process.FileID) bool {
	pids, err := process.Mappers(id.Device, id.Inode)
	if err != nil {
		return false
	}
	for _, pid := range pids {
		if !h.set.config.Job.Traced(pid) && !h.descends(pid) {
			return false
		}
	}
	return true
}

// descends reports whether a process is a child of a traced one that the
// tracer has not heard of yet.
func (h *sharing) descends(pid int) bool {
	for range 64 {
		p, err := process.Open(pid)
		if err != nil {
			return errors.Is(err, process.ErrExited) || errors.Is(err, process.ErrNotFound)
		}
		if h.set.config.Job.Traced(p.ParentPID) {
			return true
		}
		if pid = p.ParentPID; pid <= 1 {
			return false
		}
	}
	return false
}

// yield stops tracing a file for everyone as soon as a process outside
// the job is found to pay for its probes.
func (h *sharing) yield() error {
	if !h.anyShared() {
		return nil
	}
	foreign, err := h.set.config.Kernel.Lost(kernel.Loss(bpf.CallLossLOSS_FOREIGN_HIT))
	if err != nil {
		return err
	}
	if foreign == h.foreign {
		return nil
	}
	h.foreign = foreign
	for id, f := range h.set.files {
		if !f.exclusive || h.onlyOurs(id) {
			continue
		}
		if err := h.unshare(f); err != nil {
			return err
		}
	}
	return nil
}

// anyShared reports whether a file has links that serve every process that maps it.
func (h *sharing) anyShared() bool {
	for _, f := range h.set.files {
		if f.exclusive {
			return true
		}
	}
	return false
}

// unshare gives each traced process links of its own, in place of the one that
// serves all processes. The new ones go in beside the old ones and record nothing
// until it is their turn, so that no call is missed and none is seen twice.
func (h *sharing) unshare(f *File) error {
	s := h.set
	f.exclusive = false
	var old []*kernel.Links
	_, detail := f.detail[0]
	for _, tier := range f.tiers() {
		if set, ok := tier[0]; ok {
			old = append(old, set)
			delete(tier, 0)
		}
	}
	for i := range f.plan.Probes {
		f.plan.Probes[i].Spec.Turn ^= 1
	}
	err := s.attachAnchors(f)
	if err == nil && detail {
		err = s.attach(f, f.detail, s.attachedDetail(f))
	}
	for i := range f.plan.Probes {
		err = errors.Join(err, s.config.Kernel.SetSpec(f.base+uint32(i), &f.plan.Probes[i].Spec))
	}
	for _, set := range old {
		set.Close()
	}
	s.config.Warn(event.Warning{
		TSNS: time.Now().UnixNano(), Kind: "attach", Source: f.plan.Path, Count: 1,
		Detail: "another job maps the file: its probes are now put in for each process, and the first calls of later children are not recorded",
	})
	return err
}
