package tracer

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// tracedProcess is one process of the job.
type tracedProcess struct {
	process  *process.Process
	row      Process
	mapped   map[fileKey]bool // libraries already written
	linker   *linkSet         // on the dynamic linker's hook
	rescanAt time.Time        // when its maps are read next
	rescans  int
	hurry    bool                       // at rescanAt there will be something new
	waiting  map[fileKey]*waitingPlugin // plugins that have not made their function table

	code      uint64             // process.CodeDigest when its maps were read, 0 before
	libraries []*process.Library // of then
}

func newTracedProcess(p *process.Process, row Process) *tracedProcess {
	return &tracedProcess{process: p, row: row, mapped: map[fileKey]bool{}, waiting: map[fileKey]*waitingPlugin{}}
}

// manage follows the processes until it is time to stop.
func (s *Session) manage(ctx context.Context, life <-chan bpf.CallLifeRecord, decoded <-chan error) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-decoded:
			return decodeError{err}
		case r := <-life:
			if err := s.lifeEvent(r); err != nil {
				return err
			}
			if len(life) == 0 && s.exited() {
				return nil
			}
			if bpf.CallRecordKind(r.Kind) == bpf.CallRecordKindRECORD_LINK_MAP {
				timer.Reset(s.untilTick())
			}
		case <-timer.C:
			if err := s.tick(); err != nil {
				return err
			}
			if s.exited() {
				return nil
			}
			timer.Reset(s.untilTick())
		}
	}
}

// untilTick is how long the manager may sleep: the governor's wait, or less
// where a process is known to have something new, or has just begun.
func (s *Session) untilTick() time.Duration {
	wait := s.governor.wait()
	for _, t := range s.processes {
		if t.row.EndedNS != nil {
			continue
		}
		least := time.Millisecond
		if !t.hurry {
			least = youngTick
		}
		wait = min(wait, max(least, time.Until(t.rescanAt)))
	}
	return wait
}

// youngTick is how often processes are looked at that load their libraries.
const youngTick = 250 * time.Millisecond

func decodeLife(raw []byte) (r bpf.CallLifeRecord, ok bool) {
	if len(raw) < binary.Size(r) {
		return r, false
	}
	_, err := binary.Decode(raw, binary.NativeEndian, &r)
	return r, err == nil
}

func (s *Session) lifeEvent(r bpf.CallLifeRecord) error {
	pid := int(r.Tgid)
	p := s.processes[pid]
	switch bpf.CallRecordKind(r.Kind) {
	case bpf.CallRecordKindRECORD_FORK:
		return s.forked(r)
	case bpf.CallRecordKindRECORD_EXEC:
		return s.execed(pid)
	case bpf.CallRecordKindRECORD_LINK_MAP:
		if p != nil && p.rescanAt.After(time.Now().Add(linkSettle)) {
			p.rescanAt, p.hurry = time.Now().Add(linkSettle), true
			p.retryPlugins()
		}
	case bpf.CallRecordKindRECORD_EXIT:
		s.ended(p, r)
	case bpf.CallRecordKindRECORD_THREAD:
		s.thread(r, nil)
	case bpf.CallRecordKindRECORD_THREAD_EXIT:
		ended := int64(r.TsNs) + s.offsetNS
		s.thread(r, &ended)
	}
	return nil
}

// linkSettle is how long after the dynamic linker's hook the maps are read:
// one dlopen calls it several times.
const linkSettle = 2 * time.Millisecond

func (s *Session) thread(r bpf.CallLifeRecord, ended *int64) {
	name := unsignedString(r.Comm[:])
	t, ok := s.threads[int32(r.Tid)]
	if !ok || ended == nil {
		t = Thread{PID: int32(r.Tgid), TID: int32(r.Tid), Name: name}
	}
	if role := process.Role(name, r.Tid == r.Tgid); role != "" {
		t.Role = &role
	}
	t.Name, t.EndedNS = name, ended
	s.threads[t.TID] = t
	s.do(func(d *decoder) { d.keep(d.sink.Thread(t)) })
}

func unsignedString(comm []int8) string {
	var b strings.Builder
	for _, c := range comm {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}

// tick reads the maps of the processes that are due and lets the governor act.
func (s *Session) tick() error {
	now := time.Now()
	for pid, p := range s.processes {
		if p.row.EndedNS != nil || now.Before(p.rescanAt) {
			continue
		}
		if err := s.rescan(pid); err != nil {
			return err
		}
	}
	if err := s.yieldToForeign(); err != nil {
		return err
	}
	if now.Sub(s.lossesAt) > lossesEvery {
		s.lossesAt = now
		losses, err := s.kernel.losses()
		if err != nil {
			return err
		}
		s.stats.lose(losses)
	}
	return s.governor.step()
}

// lossesEvery is how often the counters of losses are read, for whoever watches:
// each is a system call.
const lossesEvery = time.Second

// addProcess begins to trace a process.
func (s *Session) addProcess(p *process.Process) error {
	if _, ok := s.processes[p.PID]; ok {
		return nil
	}
	s.processes[p.PID] = newTracedProcess(p, processRow(p))
	s.follow(p.PID)
	if err := s.kernel.trace(p.PID, s.options.Follow); err != nil {
		return fmt.Errorf("tracing pid %d: %w", p.PID, err)
	}
	return s.rescan(p.PID)
}

func processRow(p *process.Process) Process {
	row := Process{
		ID: process.ID(hostname(), p.PID, p.StartTicks), PID: int32(p.PID), StartedNS: p.StartedNS,
		Exe: p.Exe, Command: p.Command, JobID: p.Job.JobID, Rank: p.Job.Rank, LocalRank: p.Job.LocalRank, WorldSize: p.Job.WorldSize,
		ContainerID: present(p.ContainerID), Cgroup: present(p.Cgroup),
	}
	parent := int32(p.ParentPID)
	row.ParentPID = &parent
	if p.NSPID != nil {
		ns := int32(*p.NSPID)
		row.NSPID = &ns
	}
	return row
}

func present(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (s *Session) writeProcess(row Process) {
	s.do(func(d *decoder) { d.keep(d.sink.Process(row)) })
}

// rescan reads a process's maps, writes what is new and probes it.
func (s *Session) rescan(pid int) error {
	t := s.processes[pid]
	if err := s.checkReturns(pid); err != nil {
		return err
	}
	t.rescans++
	t.rescanAt, t.hurry = time.Now().Add(rescanAfter(t.rescans)), false
	// The digest first: what is mapped meanwhile makes the next one another.
	code, err := t.process.CodeDigest()
	if err == nil && code == t.code {
		if s.walks != nil { // the interpreter may be ready by now
			s.walks.interpreters.mapped(t.process, t.libraries)
		}
		return s.retryPlugins(t)
	}
	libraries, err := t.process.Libraries()
	if errors.Is(err, process.ErrExited) || errors.Is(err, process.ErrNotFound) {
		return nil // its exit is on the way
	}
	if err != nil {
		return err
	}
	t.code, t.libraries = code, libraries
	// Probes first: the job does not wait for the rest.
	s.hookLinker(t, libraries)
	news, err := s.newLibraries(t, libraries)
	if err != nil {
		return err
	}
	s.classes.mapped(pid, libraries)
	if s.walks != nil {
		s.walks.mapped(t.process, libraries)
	}
	s.stubs.mapped(pid, libraries)
	s.decoder.accelerators.names.callers.mapped(pid, libraries)
	s.do(func(d *decoder) { d.accelerators.names.remapped(uint32(pid)) })
	if err := s.retryPlugins(t); err != nil {
		return err
	}
	if news {
		s.identify(t, libraries)
	}
	return nil
}

// newLibraries writes and probes what a process has mapped since the last time.
func (s *Session) newLibraries(t *tracedProcess, libraries []*process.Library) (news bool, err error) {
	// The small ones first: planning PyTorch's operators takes long, and the
	// allocator need not wait for it.
	bySize := slices.SortedStableFunc(slices.Values(libraries), func(a, b *process.Library) int { return cmp.Compare(extent(a), extent(b)) })
	for _, library := range bySize {
		key := fileKey{library.Device, library.Inode}
		if t.mapped[key] {
			continue
		}
		t.mapped[key], news = true, true
		if err := s.newLibrary(t, key, library); err != nil {
			return news, err
		}
	}
	return news, nil
}

// extent is how many bytes of its process a library covers.
func extent(l *process.Library) (bytes uint64) {
	for _, s := range l.Segments {
		bytes += s.End - s.Start
	}
	return bytes
}

// rescanAfter spaces the reading of the maps: often while a process starts,
// then as a fallback for what the dynamic linker's hook does not tell.
func rescanAfter(n int) time.Duration {
	if n < 20 {
		return 100 * time.Millisecond
	}
	return 2 * time.Second
}

// identify fills in the interpreter and framework.
func (s *Session) identify(t *tracedProcess, libraries []*process.Library) {
	if python, err := t.process.Python(libraries); err == nil && python != nil {
		t.row.PythonVersion = present(python.Version)
	}
	for _, f := range t.process.Frameworks(libraries) {
		t.row.Framework, t.row.FrameworkVersion = present(f.Name), present(f.Version)
		break
	}
	s.writeProcess(t.row)
}

func (s *Session) newLibrary(t *tracedProcess, key fileKey, library *process.Library) error {
	row := Library{PID: t.row.PID, Path: library.Path, Deleted: library.Deleted}
	for i, segment := range library.Segments {
		if i == 0 || int64(segment.Start) < row.StartAddress {
			row.StartAddress, row.FileOffset = int64(segment.Start), int64(segment.FileOffset)
		}
		row.EndAddress = max(row.EndAddress, int64(segment.End))
	}
	file, known := s.files[key]
	var elf *symbolize.ELF
	if !known {
		var err error
		if elf, err = library.OpenELF(); err != nil {
			s.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "library", Source: library.Path, Count: 1, Detail: err.Error()})
		} else {
			row.BuildID = present(elf.BuildID())
		}
	} else {
		row.BuildID = present(file.plan.BuildID)
	}
	s.do(func(d *decoder) {
		d.keep(d.sink.Library(row))
		if isDriver(library.Name()) && row.BuildID != nil {
			d.cuda.mapped(uint32(row.PID), *row.BuildID)
		}
	})
	if known {
		file.mapped[t.process.PID] = library
		return s.attachNewcomer(file, t.process.PID)
	}
	if elf == nil {
		return nil
	}
	if IsPlugin(elf, s.groups) {
		return s.newPlugin(t, key, elf, library)
	}
	if !s.catalogued(library, elf) {
		elf.Close()
		return nil
	}
	return s.newFile(key, s.plans.plan(elf, library.Path, s.groups), t.process.PID, library)
}

// catalogued reports whether anything of a file may be probed.
func (s *Session) catalogued(library *process.Library, elf *symbolize.ELF) (found bool) {
	base := filepath.Base(library.Path)
	err := symbolize.Guard(func() { found = s.anyLives(base, elf) })
	return err == nil && found
}

func (s *Session) anyLives(base string, elf *symbolize.ELF) bool {
	for _, g := range s.groups {
		for i := range g.Functions {
			if g.Functions[i].Lives(base, elf) {
				return true
			}
		}
	}
	return false
}

// newFile makes room for a library's probes and attaches the anchor groups.
func (s *Session) newFile(key fileKey, plan *Plan, pid int, library *process.Library) error {
	file := &tracedFile{
		key: key, plan: plan, firstPID: int32(pid), mapped: map[int]*process.Library{pid: library},
		anchor: map[string]map[int]*linkSet{}, detail: map[int]*linkSet{},
	}
	base, err := s.probes.add(file)
	if err != nil {
		s.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "attach", Source: library.Path, Count: int64(len(plan.Probes)), Detail: err.Error()})
		return nil
	}
	file.base = base
	if s.withoutReturns != nil {
		plan.dropReturns()
	}
	for i := range plan.Probes {
		if s.walks != nil && wantsStack(s.options.Level, plan.Probes[i].Function) {
			plan.Probes[i].takeStack()
		}
		if s.governor.demoted[plan.Probes[i].Group.Name] {
			s.probes.at(base + uint32(i)).makeDetail(1)
		}
		if err := s.kernel.setSpec(base+uint32(i), &plan.Probes[i].spec); err != nil {
			return fmt.Errorf("writing the probe table: %w", err)
		}
		if plan.Probes[i].Function.Step && s.governor.tier(plan.Probes[i].Group) == catalog.Anchor {
			s.steps = append(s.steps, s.probes.at(base+uint32(i)))
		}
	}
	s.warnNewer(plan)
	file.exclusive = s.options.Follow && s.onlyOurs(key)
	s.files[key] = file
	if err := s.attachAnchors(file); err != nil {
		return err
	}
	if s.governor.phase == phaseFull && s.governor.budget <= 0 {
		if err := s.attachTier(file, file.detail, s.usable(file, catalog.Detail)); err != nil {
			return err
		}
	}
	if s.running && len(plan.Probes) > 0 {
		s.warn(Warning{
			TSNS: plan.begun.UnixNano(), Kind: "late", Source: library.Path, Count: int64(len(plan.Probes)),
			Detail: fmt.Sprintf("the job loaded it while it was recorded: calls in the first %d ms after it was seen, until its probes were in place, are not recorded", time.Since(plan.begun).Milliseconds()),
		})
	}
	return nil
}

// onlyOurs reports whether no process outside the job maps a file.
func (s *Session) onlyOurs(key fileKey) bool {
	pids, err := process.Mappers(key.device, key.inode)
	if err != nil {
		return false
	}
	for _, pid := range pids {
		if _, ok := s.processes[pid]; !ok && !s.descends(pid) {
			return false
		}
	}
	return true
}

// descends reports whether a process is a child of a traced one that the
// tracer has not heard of yet.
func (s *Session) descends(pid int) bool {
	for range 64 {
		p, err := process.Open(pid)
		if err != nil {
			return errors.Is(err, process.ErrExited) || errors.Is(err, process.ErrNotFound)
		}
		if _, ok := s.processes[p.ParentPID]; ok {
			return true
		}
		if pid = p.ParentPID; pid <= 1 {
			return false
		}
	}
	return false
}

// forked begins to trace a child. The kernel has made it a target already; it
// maps what its parent maps.
func (s *Session) forked(r bpf.CallLifeRecord) error {
	pid := int(r.Tgid)
	if _, ok := s.processes[pid]; ok {
		return nil
	}
	p, err := process.Open(pid)
	if err != nil {
		// It came and went; what is known of it is from the records alone.
		row := Process{ID: process.ID(hostname(), pid, uint64(r.TsNs)), PID: int32(pid), StartedNS: int64(r.TsNs) + s.offsetNS}
		parent := int32(r.ParentTgid)
		row.ParentPID = &parent
		if t := s.processes[int(r.ParentTgid)]; t != nil {
			row.Exe, row.Command, row.Framework, row.FrameworkVersion = t.row.Exe, t.row.Command, t.row.Framework, t.row.FrameworkVersion
			row.PythonVersion = t.row.PythonVersion
		}
		s.processes[pid] = newTracedProcess(&process.Process{PID: pid}, row)
		s.writeProcess(row)
		return nil
	}
	return s.addProcess(p)
}

// execed: another program runs in the process now.
func (s *Session) execed(pid int) error {
	t := s.processes[pid]
	if t == nil {
		return nil
	}
	s.unmap(pid)
	if s.walks != nil {
		s.walks.execed(pid)
	}
	p, err := process.Open(pid)
	if errors.Is(err, process.ErrNotFound) || errors.Is(err, process.ErrExited) {
		return nil // it came and went
	}
	if err != nil {
		s.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "process", Source: fmt.Sprint(pid), Count: 1, Detail: "after exec: " + err.Error()})
		return nil
	}
	started := t.row.StartedNS
	*t = *newTracedProcess(p, processRow(p))
	t.row.StartedNS = started
	return s.rescan(pid)
}

// unmap takes a process off every file.
func (s *Session) unmap(pid int) {
	for _, f := range s.files {
		delete(f.mapped, pid)
		for _, tier := range f.tiers() {
			if set, ok := tier[pid]; ok && pid != 0 {
				set.Close()
				delete(tier, pid)
			}
		}
	}
	if t := s.processes[pid]; t != nil {
		s.forgetPlugins(t)
		t.linker.closeIfAny()
		t.linker = nil
	}
}

func (s *Session) ended(t *tracedProcess, r bpf.CallLifeRecord) {
	if t == nil || t.row.EndedNS != nil {
		return
	}
	ended := int64(r.TsNs) + s.offsetNS
	t.row.EndedNS = &ended
	s.unmap(int(r.Tgid))
	if s.walks != nil {
		s.walks.ended(int(r.Tgid))
	}
	s.unfollow(int(r.Tgid))
	s.writeProcess(t.row)
	s.do(func(d *decoder) { d.ended(int32(r.Tgid)) })
}

// forget ends a process of whose exit the kernel may not have told, because it
// came before the process was a target.
func (s *Session) forget(pid int) {
	t := s.processes[pid]
	if t == nil || t.row.EndedNS != nil {
		return
	}
	now := time.Now().UnixNano()
	t.row.EndedNS = &now
	s.unmap(pid)
	s.unfollow(pid)
	s.writeProcess(t.row)
}

// hookLinker asks to be told when the process loads another library.
func (s *Session) hookLinker(t *tracedProcess, libraries []*process.Library) {
	if t.linker != nil {
		return
	}
	for _, library := range libraries {
		base := filepath.Base(library.Path)
		if !strings.HasPrefix(base, "ld-linux") && !strings.HasPrefix(base, "ld-musl") && !strings.HasPrefix(base, "ld-2") {
			continue
		}
		elf, err := library.OpenELF()
		if err != nil {
			return
		}
		defer elf.Close()
		symbol, ok := elf.Lookup("_dl_debug_state")
		if !ok {
			return
		}
		path, _, err := library.OpenPath()
		if err != nil {
			return
		}
		if offset, ok := elf.FileOffset(symbol.Address); ok {
			t.linker, _ = s.kernel.attachLinkMap(path, t.process.PID, offset)
		}
		return
	}
}
