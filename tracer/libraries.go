package tracer

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/accel"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/probes"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// The libraries that a process maps: found when it is first seen, when its
// dynamic linker says that it has loaded one, and now and then.

// rescan reads a process's maps, writes what is new and probes it.
func (s *Session) rescan(pid int) error {
	t := s.processes[pid]
	if err := s.probes.CheckReturns(pid); err != nil {
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
		held := s.probes.Files()[key] != nil || s.planning[key] != nil || t.waiting[key] != nil
		if !t.seen.isNews(key, library.Path, held, s.probes.GivenBack()) {
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
	file, known := s.probes.Files()[key]
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
			t.seen.refused[key] = refusal{library.Path, s.probes.GivenBack()} // it may be gone, and its inode number the next one's
		} else {
			row.BuildID = present(opened.ELF.BuildID())
		}
	default:
		row.BuildID = present(file.BuildID())
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
		return s.probes.Join(file, t.process.PID, library)
	}
	if opened == nil {
		return nil
	}
	return s.planFile(t, key, opened, library)
}

func (s *Session) anyLives(base string, elf *symbolize.ELF) bool {
	for _, g := range s.chosen.Groups {
		for i := range g.Functions {
			if g.Functions[i].Lives(base, elf) {
				return true
			}
		}
	}
	return false
}

// newFile puts the probes of a library in that are in all the time.
func (s *Session) newFile(t *tracedProcess, opened *plan.Source, made *plan.Plan, library *process.Library) error {
	made.Keep(&s.options.Filter)
	id := library.ID()
	room, err := s.probes.Add(&probes.Found{
		Source: opened, Plan: made, Process: t.process, Library: library, Libraries: t.libraries, Again: t.seen.wasRefused(id, library.Path),
	})
	if !room {
		t.seen.refused[id] = refusal{library.Path, s.probes.GivenBack()}
		return err
	}
	delete(t.seen.refused, id)
	return err
}

// unmapAbsent takes a process off the files that it does not map any more.
func (s *Session) unmapAbsent(t *tracedProcess, libraries []*process.Library) {
	present := make(map[process.FileID]bool, len(libraries))
	for _, l := range libraries {
		present[l.ID()] = true
	}
	t.seen.keep(present)
	for id, w := range t.waiting {
		if !present[id] {
			w.close()
			delete(t.waiting, id)
		}
	}
	s.probes.Unmap(t.process.PID, present)
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
