package tracer

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/accel"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// The libraries that a process maps: found when it is first seen, when its
// dynamic linker says that it has loaded one, and now and then.

// rescan reads a process's maps, writes what is new and probes it.
func (s *Session) rescan(pid int) error {
	t := s.processes[pid]
	if err := s.checkReturns(pid); err != nil {
		return err
	}
	t.rescans++
	t.rescanAt, t.hurry = time.Now().Add(rescanAfter(t.rescans)), false
	// The digest first: what is mapped meanwhile makes the next one another.
	reading := beginReading()
	code, err := t.process.CodeDigest()
	unchanged := err == nil && code == t.code
	var libraries []*process.Library
	if !unchanged {
		libraries, err = t.process.Libraries()
	}
	took, cpu := reading.end()
	t.rests.read(time.Now(), took, cpu)
	if unchanged {
		if s.walks != nil { // the interpreter may be ready by now
			s.walks.Remapped(t.process, t.libraries)
		}
		return s.retryPlugins(t)
	}
	if errors.Is(err, process.ErrExited) || errors.Is(err, process.ErrNotFound) {
		return nil // its exit is on the way
	}
	if err != nil {
		return err
	}
	s.warnLeftOut(t)
	t.code, t.libraries = code, libraries
	s.unmapAbsent(t, libraries)
	// Probes first: the job does not wait for the rest.
	s.hookLinker(t, libraries)
	news, err := s.newLibraries(t, libraries)
	if err != nil {
		return err
	}
	if len(t.seen.refused) > 0 {
		t.code = 0 // to be looked at again
	}
	s.classes.mapped(pid, libraries)
	if s.walks != nil {
		s.walks.Mapped(t.process, libraries)
	}
	s.stubs.Mapped(pid, libraries)
	s.decoder.accelerators.Mapped(pid, libraries)
	s.do(func(d *decoder) { d.accelerators.Remapped(uint32(pid)) })
	if err := s.retryPlugins(t); err != nil {
		return err
	}
	if news {
		s.identify(t, libraries)
	}
	return nil
}

// rescanAfter spaces the reading of the maps: often while a process starts,
// then as a fallback for what the dynamic linker's hook does not tell.
func rescanAfter(n int) time.Duration {
	if n < 20 {
		return 100 * time.Millisecond
	}
	return 2 * time.Second
}

// newLibraries writes and probes what a process has mapped since the last time.
func (s *Session) newLibraries(t *tracedProcess, libraries []*process.Library) (news bool, err error) {
	// The small ones first: planning PyTorch's operators takes long, and the
	// allocator need not wait for it.
	bySize := slices.SortedStableFunc(slices.Values(libraries), func(a, b *process.Library) int { return cmp.Compare(extent(a), extent(b)) })
	for _, library := range bySize {
		key := library.ID()
		held := s.files[key] != nil || s.planning[key] != nil || t.waiting[key] != nil
		if !t.seen.isNews(key, library.Path, held, s.leaving.given) {
			continue
		}
		t.seen.paths[key], news = library.Path, true
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

func (s *Session) newLibrary(t *tracedProcess, key process.FileID, library *process.Library) error {
	row := Library{PID: t.row.PID, Path: library.Path, Deleted: library.Deleted}
	for i, segment := range library.Segments {
		if i == 0 || int64(segment.Start) < row.StartAddress {
			row.StartAddress, row.FileOffset = int64(segment.Start), int64(segment.FileOffset)
		}
		row.EndAddress = max(row.EndAddress, int64(segment.End))
	}
	file, known := s.files[key]
	again := t.seen.wasRefused(key, library.Path)
	var opened *plan.Source
	underway := s.planning[key]
	switch {
	case underway != nil:
		underway.mappers = append(underway.mappers, mapper{t.process.PID, library})
		row.BuildID = present(underway.opened.ELF.BuildID())
	case !known:
		var err error
		if opened, err = plan.OpenSource(library); err != nil {
			if !again {
				s.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "library", Source: library.Path, Count: 1, Detail: err.Error()})
			}
			t.seen.refused[key] = refusal{library.Path, s.leaving.given} // it may be gone, and its inode number the next one's
		} else {
			row.BuildID = present(opened.ELF.BuildID())
		}
	default:
		row.BuildID = present(file.plan.BuildID)
	}
	s.do(func(d *decoder) {
		if !again {
			d.keep(d.sink.Library(row))
		}
		if accel.IsDriver(library.Name()) && row.BuildID != nil {
			d.cuda.Mapped(uint32(row.PID), *row.BuildID)
		}
	})
	if known {
		file.mapped[t.process.PID] = library
		return s.attachNewcomer(file, t.process.PID)
	}
	if opened == nil {
		return nil
	}
	return s.planFile(t, key, opened, library)
}

func (s *Session) anyLives(base string, elf *symbolize.ELF) bool {
	for _, g := range s.chosen.groups {
		for i := range g.Functions {
			if g.Functions[i].Lives(base, elf) {
				return true
			}
		}
	}
	return false
}

// newFile makes room for a library's probes and attaches the anchor groups.
func (s *Session) newFile(key process.FileID, opened *plan.Source, plan *plan.Plan, pid int, library *process.Library) error {
	file := &tracedFile{
		key: key, source: opened, plan: plan, firstPID: int32(pid), mapped: map[int]*process.Library{pid: library},
		anchor: map[string]map[int]*kernel.Links{}, detail: map[int]*kernel.Links{},
	}
	plan.Keep(&s.options.Filter)
	s.takeStacks(plan)
	s.takeShapes(plan, s.processes[pid], library)
	t := s.processes[pid]
	if err := s.place(file, t); err != nil {
		opened.Close()
		if !t.seen.wasRefused(key, library.Path) {
			s.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "attach", Source: library.Path, Count: int64(len(plan.Probes)), Detail: err.Error()})
		}
		t.seen.refused[key] = refusal{library.Path, s.leaving.given}
		return nil
	}
	delete(t.seen.refused, key)
	base := file.base
	if s.withoutReturns != nil {
		plan.DropReturns()
	}
	for i := range plan.Probes {
		s.open.wanted = s.open.wanted || plan.Probes[i].Function.Effect == catalog.AwaitsWork
		if s.demoted[plan.Probes[i].Group.Name] {
			s.probes.at(base + uint32(i)).makeDetail(1)
		}
		if err := s.kernel.SetSpec(base+uint32(i), &plan.Probes[i].Spec); err != nil {
			return fmt.Errorf("writing the probe table: %w", err)
		}
		if plan.Probes[i].Function.Step && s.tier(plan.Probes[i].Group) == catalog.Anchor {
			s.steps = append(s.steps, s.probes.at(base+uint32(i)))
		}
	}
	s.warnNewer(plan)
	file.exclusive = s.options.Follow && s.onlyOurs(key)
	s.files[key] = file
	if err := s.attachAnchors(file); err != nil {
		return err
	}
	if s.governor.RecordsAll() {
		if err := s.attachTier(file, file.detail, s.usable(file, catalog.Detail)); err != nil {
			return err
		}
	}
	if s.running && len(plan.Probes) > 0 {
		s.warn(Warning{
			TSNS: plan.Begun.UnixNano(), Kind: "late", Source: library.Path, Count: int64(len(plan.Probes)),
			Detail: fmt.Sprintf("the job loaded it while it was recorded: calls in the first %d ms after it was seen, until its probes were in place, are not recorded", time.Since(plan.Begun).Milliseconds()),
		})
	}
	return nil
}

// onlyOurs reports whether no process outside the job maps a file.
func (s *Session) onlyOurs(key process.FileID) bool {
	pids, err := process.Mappers(key.Device, key.Inode)
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

// hookLinker asks to be told when the process loads another library.
func (s *Session) hookLinker(t *tracedProcess, libraries []*process.Library) {
	if t.linker != nil || !s.mayHookLinker(t) {
		return
	}
	for _, library := range libraries {
		base := filepath.Base(library.Path)
		if !strings.HasPrefix(base, "ld-linux") && !strings.HasPrefix(base, "ld-musl") && !strings.HasPrefix(base, "ld-2") {
			continue
		}
		opened, err := plan.OpenSource(library)
		if err != nil {
			return
		}
		defer opened.Close()
		_ = symbolize.Guard(func() {
			if symbol, ok := opened.ELF.Lookup("_dl_debug_state"); ok {
				t.linker = s.hookFunction(opened, t.process.PID, symbol.Address)
			}
		})
		return
	}
}

// hookFunction asks to be told when a process calls a function; nil where that can
// not be done.
func (s *Session) hookFunction(opened *plan.Source, pid int, address uint64) *kernel.Links {
	offset, ok := opened.ELF.FileOffset(address)
	if !ok || opened.InHeader(address) || !opened.ELF.IsCode(address) {
		return nil
	}
	hook, _ := s.kernel.AttachLinkMap(opened.Path(), pid, offset)
	return hook
}
