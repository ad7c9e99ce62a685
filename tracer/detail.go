package tracer

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
)

// What is attached: the anchor groups for as long as a process maps the file,
// the detail groups when the governor says so.

// attachTier puts a file's probes on whoever is to be traced.
func (s *Session) attachTier(f *tracedFile, tier map[int]*kernel.Links, probes []int) error {
	if len(probes) == 0 {
		return nil
	}
	if f.source == nil {
		return nil
	}
	if err := f.source.Verify(f.plan.Probes, probes); err != nil {
		s.dropChanged(f, err)
		return nil
	}
	sites := sitesOf(f.plan, f.base, probes)
	for _, pid := range f.pids() {
		if _, ok := tier[pid]; ok {
			continue
		}
		set, err := s.kernel.Attach(f.source.Path(), pid, f.runner(pid), sites)
		if err != nil {
			if vanished(err) || pid != 0 && s.gone(pid) || pid == 0 && s.orphaned(f) {
				continue
			}
			if err := s.attachFailed(f, pid, err); err != nil {
				return err
			}
			continue
		}
		tier[pid] = set
	}
	for _, i := range probes {
		s.probes.at(f.base + uint32(i)).attached = true
	}
	return nil
}

// dropChanged takes the probes of a file out that is not any more what was
// planned: somebody writes to it, and where a probe belongs is not known.
func (s *Session) dropChanged(f *tracedFile, changed error) {
	s.detaching.CloseTier(f.tiers()...)
	for i := range f.plan.Probes {
		f.plan.Probes[i].EntryErr = plan.ErrChanged
	}
	s.warn(Warning{
		TSNS: time.Now().UnixNano(), Kind: "attach", Source: f.plan.Path, Count: int64(len(f.plan.Probes)),
		Detail: changed.Error() + ": they are out, and nothing more of it is seen; restart the job after an upgrade",
	})
}

// vanished reports whether attaching failed because the process is exiting: its
// memory is gone before it is.
func vanished(err error) bool {
	return errors.Is(err, unix.ESRCH) || errors.Is(err, os.ErrNotExist)
}

// attachAnchors puts in a file's probes that are in all the time, a group at a
// time: each can be taken out by itself.
func (s *Session) attachAnchors(f *tracedFile) error {
	groups := map[string][]int{}
	for _, i := range s.usable(f, catalog.Anchor) {
		name := f.plan.Probes[i].Group.Name
		groups[name] = append(groups[name], i)
	}
	for name, probes := range groups {
		if f.anchor[name] == nil {
			f.anchor[name] = map[int]*kernel.Links{}
		}
		if err := s.attachTier(f, f.anchor[name], probes); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) gone(pid int) bool {
	t := s.processes[pid]
	return t == nil || !t.process.Alive()
}

// orphaned reports whether everyone who mapped a file is gone, and with them
// the way to it.
func (s *Session) orphaned(f *tracedFile) bool {
	for pid := range f.mapped {
		if !s.gone(pid) {
			return false
		}
	}
	return true
}

// attachNewcomer puts the probes of a known file on one more process.
func (s *Session) attachNewcomer(f *tracedFile, pid int) error {
	if f.exclusive {
		return nil // the link without a pid serves it already
	}
	if err := s.attachAnchors(f); err != nil {
		return err
	}
	if len(f.detail) == 0 {
		return nil
	}
	return s.attachTier(f, f.detail, s.attachedDetail(f))
}

func (s *Session) attachedDetail(f *tracedFile) []int {
	var probes []int
	for _, i := range s.usable(f, catalog.Detail) {
		if p := s.probes.at(f.base + uint32(i)); p.used || s.governor.RecordsAll() {
			probes = append(probes, i)
		}
	}
	return probes
}

// byFile tells which probes of which files some are.
func (s *Session) byFile(indices []uint32) map[*tracedFile][]int {
	named := map[*tracedFile][]int{}
	for _, index := range indices {
		f := s.probes.at(index).file
		if f.source == nil {
			continue // nobody maps it any more
		}
		named[f] = append(named[f], int(index-f.base))
	}
	return named
}

// attachDetail puts detail probes in.
func (s *Session) attachDetail(indices []uint32) error {
	for f, probes := range s.byFile(indices) {
		if err := s.attachTier(f, f.detail, probes); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) detachDetail() {
	tiers := make([]map[int]*kernel.Links, 0, len(s.files))
	for _, f := range s.files {
		tiers = append(tiers, f.detail)
	}
	s.detaching.CloseTier(tiers...)
}

// learnUsed looks which probes the job is known to use: how many, and which are new.
// Those whose function tells it by a guard byte are read from the processes'
// memory; the others, a handful, count as used.
func (s *Session) learnUsed() (known int, fresh []uint32) {
	use := func(p *probe) {
		if !p.used {
			p.used, fresh = true, append(fresh, p.Index)
		}
	}
	for _, f := range s.files {
		for pid, library := range f.mapped {
			bias, ok := library.Bias(f.plan.ELF)
			if !ok {
				continue
			}
			used, err := plan.UsedProbes(pid, bias, f.plan.Probes)
			if err != nil {
				continue // it exited, or its next reading will tell
			}
			for _, i := range used {
				use(s.probes.at(f.base + uint32(i)))
			}
		}
		for _, i := range s.usable(f, catalog.Detail) {
			p := s.probes.at(f.base + uint32(i))
			if p.Planned.UsedFlag == 0 {
				use(p)
			}
			if p.used {
				known++
			}
		}
	}
	return known, fresh
}

// usedDetail lists the detail probes that a slice attaches.
func (s *Session) usedDetail() (used []uint32) {
	for _, f := range s.files {
		for _, i := range s.usable(f, catalog.Detail) {
			if p := s.probes.at(f.base + uint32(i)); p.used {
				used = append(used, p.Index)
			}
		}
	}
	return used
}

// attachMore puts in what the job has begun to use since the last look, whose
// first calls went unseen, and as many of the rest as the budget has room for,
// so that there is nothing left to begin.
func (s *Session) attachMore(attached []uint32, places int) (news []uint32, err error) {
	known := map[uint32]bool{}
	for _, index := range attached {
		known[index] = true
	}
	for _, f := range s.files {
		var more, late []int
		for _, i := range s.usable(f, catalog.Detail) {
			switch p := s.probes.at(f.base + uint32(i)); {
			case known[p.Index]:
			case p.used:
				late = append(late, i)
			case len(more) < places:
				more = append(more, i)
			}
		}
		places -= len(more)
		s.warnLate(f, late)
		if more = append(more, late...); len(more) == 0 {
			continue
		}
		extra := map[int]*kernel.Links{}
		if err := s.attachTier(f, extra, more); err != nil {
			return news, err
		}
		for pid, set := range extra {
			f.detail[pid] = f.detail[pid].Join(set)
		}
		for _, i := range more {
			news = append(news, f.base+uint32(i))
		}
	}
	return news, nil
}

// warnLate says which functions had calls before their probes were in.
func (s *Session) warnLate(f *tracedFile, late []int) {
	if len(late) == 0 {
		return
	}
	names := make([]string, 0, len(late))
	for _, i := range late {
		names = append(names, f.plan.Probes[i].Call.Name)
	}
	s.warn(Warning{
		TSNS: time.Now().UnixNano(), Kind: "late", Source: f.plan.Path, Count: int64(len(late)),
		Detail: "the job has just begun to use these, and their first calls are not recorded: " + strings.Join(names, ", "),
	})
}

// frameworkProcesses lists those of the job's processes that have a framework.
func (s *Session) frameworkProcesses() (pids []int) {
	for pid, t := range s.processes {
		if t.row.Framework != nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// yieldToForeign stops tracing a file for everyone as soon as a process outside
// the job is found to pay for its probes.
func (s *Session) yieldToForeign() error {
	if !s.anyExclusive() {
		return nil
	}
	foreign, err := s.kernel.Lost(kernel.Loss(bpf.CallLossLOSS_FOREIGN_HIT))
	if err != nil {
		return err
	}
	if foreign == s.foreign {
		return nil
	}
	s.foreign = foreign
	for key, f := range s.files {
		if !f.exclusive || s.onlyOurs(key) {
			continue
		}
		if err := s.share(f); err != nil {
			return err
		}
	}
	return nil
}

// anyExclusive reports whether a file has links that serve everybody who maps it.
func (s *Session) anyExclusive() bool {
	for _, f := range s.files {
		if f.exclusive {
			return true
		}
	}
	return false
}

// share gives each traced process links of its own, in place of the one that
// serves everybody. The new ones go in beside the old ones and record nothing
// until it is their turn, so that no call is missed and none is seen twice.
func (s *Session) share(f *tracedFile) error {
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
		err = s.attachTier(f, f.detail, s.attachedDetail(f))
	}
	for i := range f.plan.Probes {
		err = errors.Join(err, s.kernel.SetSpec(f.base+uint32(i), &f.plan.Probes[i].Spec))
	}
	for _, set := range old {
		set.Close()
	}
	s.warn(Warning{
		TSNS: time.Now().UnixNano(), Kind: "attach", Source: f.plan.Path, Count: 1,
		Detail: "another job maps the file: its probes are now put in for each process, and the first calls of later children are not recorded",
	})
	return err
}

// probeRows describes every planned probe, with what it saw.
func (s *Session) probeRows() []Probe {
	all := s.probes.all()
	rows := make([]Probe, 0, len(all))
	for _, p := range all {
		if p.gone {
			continue
		}
		if row, ok := s.probeRow(p); ok {
			rows = append(rows, row)
		}
	}
	return rows
}

// probeRow describes one.
func (s *Session) probeRow(p *probe) (row Probe, ok bool) {
	count, err := s.kernel.Count(p.Index)
	if err != nil {
		return row, false
	}
	hits := int64(max(count.Entries-p.before.Entries, count.Exits-p.before.Exits))
	row = Probe{
		Library: p.file.plan.Path, Symbol: p.Planned.Symbol, Name: p.Planned.Call.Name, Layer: p.Planned.Call.Layer, Kind: p.Planned.Kind(),
		Attached: p.attached, Reason: p.Planned.Reason(), Hits: hits,
		Lost: int64(count.Lost - p.before.Lost), Thinned: int64(s.governor.Thinned(p.Index) - p.thinnedBefore),
	}
	row.PID = p.file.firstPID
	if p.Planned.EntryErr == nil {
		offset := int64(p.Planned.Entry.Offset)
		row.Site, row.SiteCost = &offset, p.Planned.Entry.Cost.String()
	}
	if !p.attached && p.Planned.Usable() {
		row.Reason = fmt.Sprintf("not attached: the job was not seen to use it (%s)", row.Reason)
	}
	return row, true
}
