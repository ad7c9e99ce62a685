package probes

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
)

// links put the probes of files in and out: the anchor groups for as long as a process
// maps the file, the detail groups when the governor says so.
type links struct {
	set *Set
}

// attach puts a file's probes on whoever is to be traced.
func (l *links) attach(f *File, tier map[int]*kernel.Links, probes []int) error {
	if len(probes) == 0 {
		return nil
	}
	if f.source == nil {
		return nil
	}
	if err := f.source.Verify(f.plan.Probes, probes); err != nil {
		l.dropChanged(f, err)
		return nil
	}
	sites := SitesOf(f.plan, f.base, probes)
	for _, pid := range f.pids() {
		if _, ok := tier[pid]; ok {
			continue
		}
		set, err := l.set.config.Kernel.Attach(f.source.Path(), pid, f.runner(pid), sites)
		if err != nil {
			if vanished(err) || pid != 0 && !l.set.config.Job.Alive(pid) || pid == 0 && l.orphaned(f) {
				continue
			}
			if err := l.failed(f, pid, err); err != nil {
				return err
			}
			continue
		}
		tier[pid] = set
	}
	for _, i := range probes {
		l.set.at(f.base + uint32(i)).attached = true
	}
	return nil
}

// attachAnchors puts in a file's probes that are in all the time, a group at a
// time: each can be taken out by itself.
func (l *links) attachAnchors(f *File) error {
	groups := map[string][]int{}
	for _, i := range l.set.usable(f, spec.Anchor) {
		name := f.plan.Probes[i].Group.Name
		groups[name] = append(groups[name], i)
	}
	for name, probes := range groups {
		if f.anchor[name] == nil {
			f.anchor[name] = map[int]*kernel.Links{}
		}
		if err := l.attach(f, f.anchor[name], probes); err != nil {
			return err
		}
	}
	return nil
}

// unmap takes a process off a file.
func (l *links) unmap(f *File, pid int) {
	delete(f.mapped, pid)
	for _, tier := range f.tiers() {
		if set, ok := tier[pid]; ok && pid != 0 {
			l.set.config.Detaching.Close(set)
			delete(tier, pid)
		}
	}
}

// dropChanged takes the probes of a file out that is not any more what was
// planned: the file is being written, and where a probe belongs is not known.
func (l *links) dropChanged(f *File, changed error) {
	l.set.config.Detaching.CloseTier(f.tiers()...)
	for i := range f.plan.Probes {
		f.plan.Probes[i].EntryErr = plan.ErrChanged
	}
	l.set.config.Warn(event.Warning{
		TSNS: time.Now().UnixNano(), Kind: "attach", Source: f.plan.Path, Count: int64(len(f.plan.Probes)),
		Detail: changed.Error() + ": they are out, and nothing more of it is seen; restart the job after an upgrade",
	})
}

// failed notes that a file's probes could not be put in for a process, or
// with pid 0 for all that map it: a file that was changed under its path, or no
// descriptor left. Nobody else's recording ends for it, and it is not tried again.
// What is returned is what no process can help: that the tracer may not attach.
func (l *links) failed(f *File, pid int, err error) error {
	if !l.set.running && errors.Is(err, features.ErrNotPermitted) {
		return err
	}
	whom := fmt.Sprintf("pid %d", pid)
	if pid == 0 {
		whom = "every process that maps it"
		clear(f.mapped)
	}
	delete(f.mapped, pid)
	l.set.config.Warn(event.Warning{
		TSNS: time.Now().UnixNano(), Kind: "attach", Source: f.plan.Path, Count: 1,
		Detail: fmt.Sprintf("its calls are not recorded in %s from here on: %s", whom, err),
	})
	return nil
}

// orphaned reports whether everyone who mapped a file is gone, and with them
// the way to it.
func (l *links) orphaned(f *File) bool {
	for pid := range f.mapped {
		if l.set.config.Job.Alive(pid) {
			return false
		}
	}
	return true
}

// vanished reports whether attaching failed because the process is exiting: its
// memory is gone before it is.
func vanished(err error) bool {
	return errors.Is(err, unix.ESRCH) || errors.Is(err, os.ErrNotExist)
}

// attachedDetail lists a file's detail probes that are in while any are.
func (l *links) attachedDetail(f *File) []int {
	var probes []int
	for _, i := range l.set.usable(f, spec.Detail) {
		if p := l.set.at(f.base + uint32(i)); p.used || l.set.recordsAll {
			probes = append(probes, i)
		}
	}
	return probes
}

// byFile tells which probes of which files some are.
func (l *links) byFile(indices []uint32) map[*File][]int {
	named := map[*File][]int{}
	for _, index := range indices {
		f := l.set.at(index).file
		if f.source == nil {
			continue // no process maps it any more
		}
		named[f] = append(named[f], int(index-f.base))
	}
	return named
}

// Detach takes all probes out. The Set keeps the files: AttachAnchors puts those that are
// in all the time back.
func (l *links) Detach() {
	var tiers []map[int]*kernel.Links
	for _, f := range l.set.files {
		tiers = append(tiers, f.tiers()...)
	}
	l.set.config.Detaching.CloseTier(tiers...)
	l.set.config.Detaching.Wait()
}

// AttachAnchors puts the probes in that are in all the time.
func (l *links) AttachAnchors() error {
	for _, f := range l.set.files {
		if err := l.attachAnchors(f); err != nil {
			return err
		}
	}
	return nil
}

// Sites counts the places in the job's code at which probes are.
func (l *links) Sites() (sites int) {
	for _, f := range l.set.files {
		for _, tier := range f.tiers() {
			for _, on := range tier {
				sites += on.Sites()
			}
		}
	}
	return sites
}
