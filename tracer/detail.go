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
)

// What is attached: the anchor groups for as long as a process maps the file,
// the detail groups when the governor says so.

// attachTier puts a file's probes on whoever is to be traced.
func (s *Session) attachTier(f *tracedFile, tier map[int]*linkSet, probes []int) error {
	if len(probes) == 0 {
		return nil
	}
	if f.source == nil {
		return nil
	}
	if err := f.source.verify(f.plan.Probes, probes); err != nil {
		s.dropChanged(f, err)
		return nil
	}
	sites := sitesOf(f.plan, f.base, probes)
	for _, pid := range f.pids() {
		if _, ok := tier[pid]; ok {
			continue
		}
		var set *linkSet
		beside := f.runner(pid)
		var err error
		near(beside, func() { set, err = s.kernel.attach(f.source.path(), pid, sites) })
		if err != nil {
			if vanished(err) || pid != 0 && s.gone(pid) || pid == 0 && s.orphaned(f) {
				continue
			}
			if err := s.attachFailed(f, pid, err); err != nil {
				return err
			}
			continue
		}
		set.beside = beside
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
	s.detaching.closeTier(f.tiers()...)
	for i := range f.plan.Probes {
		f.plan.Probes[i].EntryErr = errChanged
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
			f.anchor[name] = map[int]*linkSet{}
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
		if p := s.probes.at(f.base + uint32(i)); p.used || s.governor.budget <= 0 {
			probes = append(probes, i)
		}
	}
	return probes
}

// attachDetail puts the detail probes in: those named, or all of them.
func (s *Session) attachDetail(named map[*tracedFile][]int) error {
	for _, f := range s.files {
		probes := s.usable(f, catalog.Detail)
		if named != nil {
			probes = named[f]
		}
		if err := s.attachTier(f, f.detail, probes); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) detachDetail() {
	tiers := make([]map[int]*linkSet, 0, len(s.files))
	for _, f := range s.files {
		tiers = append(tiers, f.detail)
	}
	s.detaching.closeTier(tiers...)
}

func (s *Session) detachAll() {
	for _, t := range s.processes {
		s.forgetPlugins(t)
		s.detaching.close(t.linker)
		t.linker = nil
	}
	var tiers []map[int]*linkSet
	for _, f := range s.files {
		tiers = append(tiers, f.tiers()...)
	}
	s.detaching.closeTier(tiers...)
	s.detaching.wait()
}

// learnUsed looks which probes the job is known to use and returns how many.
// Those whose function tells it by a guard byte are read from the processes'
// memory; the others, a handful, count as used.
func (s *Session) learnUsed() int {
	known := 0
	for _, f := range s.files {
		for pid, library := range f.mapped {
			bias, ok := library.Bias(f.plan.file)
			if !ok {
				continue
			}
			used, err := usedProbes(pid, bias, f.plan.Probes)
			if err != nil {
				continue // it exited, or its next reading will tell
			}
			for _, i := range used {
				s.use(s.probes.at(f.base + uint32(i)))
			}
		}
		for _, i := range s.usable(f, catalog.Detail) {
			p := s.probes.at(f.base + uint32(i))
			if p.planned.UsedFlag == 0 {
				s.use(p)
			}
			if p.used {
				known++
			}
		}
	}
	return known
}

// use notes that the job calls a probe's function; its first call came after
// the present cycle began, else the last look would have found it.
func (s *Session) use(p *probe) {
	if !p.used {
		p.used, p.covered = true, s.governor.cycleStart
	}
}

// usedDetail lists the detail probes that the next slice attaches.
func (s *Session) usedDetail() map[*tracedFile][]int {
	used := map[*tracedFile][]int{}
	for _, f := range s.files {
		for _, i := range s.usable(f, catalog.Detail) {
			p := s.probes.at(f.base + uint32(i))
			if p.used && !p.resting(s.governor.slices) {
				used[f] = append(used[f], i)
			}
		}
	}
	return used
}

// restSlices is of how many slices an idle probe is in one: most operators
// that a job has used, it used while it started. They take turns, so that no
// slice is long in coming.
const restSlices = 16

// resting reports whether a probe sits this slice out.
func (p *probe) resting(slice int) bool {
	return p.idle && (int(p.index)+slice)%restSlices != 0
}

// hitsOf reads the counters of every detail probe that is attached.
func (s *Session) hitsOf(attached map[*tracedFile][]int) map[uint32]hits {
	counts := map[uint32]hits{}
	for f, probes := range attached {
		for _, i := range probes {
			index := f.base + uint32(i)
			if c, err := s.kernel.count(index); err == nil {
				counts[index] = hits{recorded: max(c.Entries, c.Exits), traps: c.Entries + c.Exits + c.Passed}
			}
		}
	}
	return counts
}

// attachMore puts in what the job has begun to use since the last look, whose
// first calls went unseen, and as many of the rest as the budget has room for,
// so that there is nothing left to begin.
func (s *Session) attachMore(g *governor, room time.Duration) error {
	s.learnUsed()
	places := int(room / (2 * stallPerSite))
	for _, f := range s.files {
		known := map[int]bool{}
		for _, i := range g.attached[f] {
			known[i] = true
		}
		var more, late []int
		for _, i := range s.usable(f, catalog.Detail) {
			switch p := s.probes.at(f.base + uint32(i)); {
			case known[i]:
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
		extra := map[int]*linkSet{}
		if err := s.attachTier(f, extra, more); err != nil {
			return err
		}
		for pid, set := range extra {
			f.detail[pid] = f.detail[pid].join(set)
		}
		g.attached[f] = append(g.attached[f], more...)
	}
	return nil
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
		Detail: fmt.Sprintf("the job began to use these in the last %s, and their first calls are not recorded: %s", checkEvery, strings.Join(names, ", ")),
	})
}

// busyProcesses is over how many processes the hits are spread.
func (s *Session) busyProcesses() int { return max(1, len(s.frameworkProcesses())) }

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
	foreign, err := s.kernel.loss(Loss(bpf.CallLossLOSS_FOREIGN_HIT))
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
	var old []*linkSet
	_, detail := f.detail[0]
	for _, tier := range f.tiers() {
		if set, ok := tier[0]; ok {
			old = append(old, set)
			delete(tier, 0)
		}
	}
	for i := range f.plan.Probes {
		f.plan.Probes[i].spec.Turn ^= 1
	}
	err := s.attachAnchors(f)
	if err == nil && detail {
		err = s.attachTier(f, f.detail, s.attachedDetail(f))
	}
	for i := range f.plan.Probes {
		err = errors.Join(err, s.kernel.setSpec(f.base+uint32(i), &f.plan.Probes[i].spec))
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
		count, err := s.kernel.count(p.index)
		if err != nil {
			continue
		}
		row := Probe{
			Library: p.file.plan.Path, Symbol: p.planned.Symbol, Name: p.planned.Call.Name, Layer: p.planned.Call.Layer, Kind: p.planned.kind(),
			Attached: p.attached, Reason: p.planned.reason(), Hits: int64(max(count.Entries, count.Exits)),
			Lost: int64(count.Lost), Thinned: int64(p.thinned),
		}
		row.PID = p.file.firstPID
		if p.planned.EntryErr == nil {
			offset := int64(p.planned.Entry.Offset)
			row.Site, row.SiteCost = &offset, p.planned.Entry.Cost.String()
		}
		if !p.attached && p.planned.Usable() {
			row.Reason = fmt.Sprintf("not attached: the job was not seen to use it (%s)", row.Reason)
		}
		rows = append(rows, row)
	}
	return rows
}

// kind says which ends the probe sees.
func (p *PlannedProbe) kind() string {
	switch {
	case p.Return:
		return "entry+return"
	case len(p.Exits) > 0:
		return "entry+exit"
	}
	return "entry"
}
