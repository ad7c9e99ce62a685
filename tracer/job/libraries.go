package job

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/probes"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// The libraries that a process maps: found when it is first seen, when its
// dynamic linker says that it has loaded one, and now and then.

// libraries are what the processes map: found in their maps.
type libraries struct {
	job      *Job
	unhooked atomic.Int64 // processes whose dynamic linker has no hook
}

// rescan reads a process's maps, writes what is new and probes it.
func (l *libraries) rescan(pid int) error {
	t, c := l.job.processes[pid], &l.job.config
	if err := c.Probes.CheckReturns(pid); err != nil {
		return err
	}
	t.maps.count++
	t.maps.next, t.maps.hurry = time.Now().Add(rescanAfter(t.maps.count)), false
	// The digest first: what is mapped meanwhile makes the next one another.
	reading := beginReading()
	code, err := t.process.CodeDigest()
	unchanged := err == nil && code == t.maps.code
	var mapped []*process.Library
	if !unchanged {
		mapped, err = t.process.Libraries()
	}
	took, cpu := reading.end()
	t.maps.rests.read(time.Now(), took, cpu)
	if unchanged {
		l.findRank(t)
		if c.Walks != nil { // the interpreter may be ready by now
			c.Walks.Remapped(t.process, t.maps.libraries)
		}
		return l.job.retryPlugins(t)
	}
	if errors.Is(err, process.ErrExited) || errors.Is(err, process.ErrNotFound) {
		return nil // its exit is on the way
	}
	if err != nil {
		return err
	}
	l.warnLeftOut(t)
	t.maps.code, t.maps.libraries = code, mapped
	l.unmapAbsent(t)
	// Probes first: the job does not wait for the rest.
	l.hookLinker(t)
	news, err := l.findNew(t)
	if err != nil {
		return err
	}
	if len(t.seen.refused) > 0 {
		t.maps.code = 0 // to be looked at again
	}
	if c.Walks != nil {
		c.Walks.Mapped(t.process, mapped)
	}
	for _, k := range c.Keepers {
		k.Mapped(pid, mapped)
	}
	c.Decoder.Remapped(pid)
	if err := l.job.retryPlugins(t); err != nil {
		return err
	}
	if news {
		l.identify(t)
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

// findNew writes and probes what a process has mapped since the last time.
func (l *libraries) findNew(t *traced) (news bool, err error) {
	// The small ones first: planning PyTorch's operators takes long, and the
	// allocator need not wait for it.
	bySize := slices.SortedStableFunc(slices.Values(t.maps.libraries), func(a, b *process.Library) int {
		return cmp.Compare(extent(a),
			extent(b))
	})
	for _, library := range bySize {
		id := library.ID()
		held := l.job.config.Probes.Files()[id] != nil || l.job.underway[id] != nil || t.plugins[id] != nil
		if !t.seen.isNews(id, library.Path, held, l.job.config.Probes.SlotsFreed()) {
			continue
		}
		t.seen.paths[id], news = library.Path, true
		if err := l.addLibrary(t, library); err != nil {
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
func (l *libraries) identify(t *traced) {
	if python, err := t.process.Python(t.maps.libraries); err == nil && python != nil {
		t.row.PythonVersion = present(python.Version)
	}
	for _, f := range t.process.Frameworks(t.maps.libraries) {
		t.row.Framework, t.row.FrameworkVersion = present(f.Name), present(f.Version)
		l.job.youth.letGrow()
		break
	}
	l.job.config.Decoder.Process(t.row)
	l.findRank(t)
}

// mostRankTries is how often a process with a framework is asked for its rank that has not given one: it
// may be set after all libraries have been loaded.
const mostRankTries = 32

// findRank asks the process's own environment where the one that it was started with has no rank.
func (l *libraries) findRank(t *traced) {
	if t.row.Rank != nil || t.row.Framework == nil || t.rankTries >= mostRankTries {
		return
	}
	t.rankTries++
	job, err := t.process.JobOfEnvironment(t.maps.libraries)
	if err != nil || job.Rank == nil {
		return
	}
	t.row.Rank, t.row.LocalRank = job.Rank, cmp.Or(t.row.LocalRank, job.LocalRank)
	t.row.WorldSize, t.row.JobID = cmp.Or(t.row.WorldSize, job.WorldSize), cmp.Or(t.row.JobID, job.JobID)
	l.job.config.Decoder.Process(t.row)
}

// addLibrary writes a library that is new to its process, and puts its probes in.
func (l *libraries) addLibrary(t *traced, library *process.Library) error {
	row := event.Library{PID: t.row.PID, Path: library.Path, Deleted: library.Deleted}
	for i, segment := range library.Segments {
		if i == 0 || int64(segment.Start) < row.StartAddress {
			row.StartAddress, row.FileOffset = int64(segment.Start), int64(segment.FileOffset)
		}
		row.EndAddress = max(row.EndAddress, int64(segment.End))
	}
	l.job.asked.mapped(library.Path)
	id, c := library.ID(), &l.job.config
	file, known := c.Probes.Files()[id]
	again := t.seen.wasRefused(id, library.Path)
	var opened *plan.Source
	underway := l.job.underway[id]
	switch {
	case underway != nil:
		underway.mappers = append(underway.mappers, mapper{t.process.PID, library})
		row.BuildID = present(underway.opened.ELF.BuildID())
	case !known:
		var err error
		if opened, err = plan.OpenSource(library); err != nil {
			if !again && t.process.Alive() && t.said.isNewReason(err) {
				l.job.warnOf("library", library.Path, 1, "%v", err)
			}
			t.seen.refused[id] = refusal{library.Path, c.Probes.SlotsFreed()} // it may be gone, and its inode number the next one's
		} else {
			row.BuildID = present(opened.ELF.BuildID())
		}
	default:
		row.BuildID = present(file.BuildID())
	}
	c.Decoder.Library(row, again)
	if known {
		return c.Probes.Join(file, t.process.PID, library)
	}
	if opened == nil {
		return nil
	}
	if opened.Unprobed != nil && !c.AllowUserMounts {
		opened.Close()
		l.warnUnprobed(t, opened.Unprobed)
		return nil
	}
	return l.job.planFile(t, opened, library)
}

// warnUnprobed says of a process, once for each file system, that no probes go into files that
// a user may serve.
func (l *libraries) warnUnprobed(t *traced, why error) {
	kind := ""
	if of := (*process.MountError)(nil); errors.As(why, &of) {
		kind = of.FileSystem
	}
	if t.said.unprobed[kind] {
		return
	}
	if t.said.unprobed == nil {
		t.said.unprobed = map[string]bool{}
	}
	if len(t.said.unprobed) < maxUnprobedSaid {
		t.said.unprobed[kind] = true
		l.job.warnOf("attach", strconv.Itoa(t.process.PID), 1, "%v", why)
	}
}

// maxUnprobedSaid bounds the file systems of a process that get a warning.
const maxUnprobedSaid = 8

// probe puts the probes of a library in that are in all the time.
func (l *libraries) probe(t *traced, opened *plan.Source, made *plan.Plan, library *process.Library) error {
	c, id := &l.job.config, library.ID()
	made.Keep(c.Filter)
	found := &probes.Found{
		Source: opened, Plan: made, Process: t.process, Library: library, Libraries: t.maps.libraries, Again: t.seen.wasRefused(id, library.Path),
	}
	room, err := c.Probes.Add(found)
	if room {
		delete(t.seen.refused, id)
		l.job.backlog.begin(found)
	} else {
		t.seen.refused[id] = refusal{library.Path, c.Probes.SlotsFreed()}
	}
	return err
}

// unmapAbsent takes a process off the files that it does not map any more.
func (l *libraries) unmapAbsent(t *traced) {
	present := make(map[process.FileID]bool, len(t.maps.libraries))
	for _, library := range t.maps.libraries {
		present[library.ID()] = true
	}
	t.seen.keep(present)
	for id, w := range t.plugins {
		if !present[id] {
			w.close()
			delete(t.plugins, id)
		}
	}
	l.job.config.Probes.Unmap(t.process.PID, present)
}

// hookLinker asks for a notice when the process loads another library.
func (l *libraries) hookLinker(t *traced) {
	if t.linker != nil || !l.mayHookLinker(t) {
		return
	}
	for _, library := range t.maps.libraries {
		base := filepath.Base(library.Path)
		// Debian's ld-musl is a link to libc.so, which no other C library's file is called.
		if base != "libc.so" && !strings.HasPrefix(base, "ld-linux") && !strings.HasPrefix(base, "ld-musl") && !strings.HasPrefix(base, "ld-2") {
			continue
		}
		opened, err := plan.OpenSource(library)
		if err != nil {
			return
		}
		defer opened.Close()
		if opened.Unprobed != nil && !l.job.config.AllowUserMounts {
			return // its libraries are found when the maps are read, within 2 s
		}
		_ = elf.Guard(func() {
			if symbol, ok := opened.ELF.Lookup("_dl_debug_state"); ok {
				t.linker = l.hookFunction(opened, t.process.PID, symbol.Address)
			}
		})
		return
	}
}

// hookFunction asks for a notice when a process calls a function; nil where that can
// not be done.
func (l *libraries) hookFunction(opened *plan.Source, pid int, address uint64) *kernel.Links {
	offset, ok := opened.ELF.FileOffset(address)
	if !ok || opened.InHeader(address) || !opened.ELF.IsCode(address) {
		return nil
	}
	hook, _ := l.job.config.Kernel.AttachLinkMap(opened.Path(), pid, offset)
	return hook
}

// MaxLinkerHooks are on the dynamic linkers of children at once: the kernel looks
// at each of them, and at each process that maps the file, whenever one comes or
// goes. What the others load is found when their maps are read, within 2 s.
const MaxLinkerHooks = 64

// mayHookLinker reports whether a process may have a hook of its own on the dynamic
// linker. Those that the user named have one; their children while there are few.
func (l *libraries) mayHookLinker(t *traced) bool {
	if slices.Contains(l.job.config.Named, t.process.PID) {
		return true
	}
	hooks := 0
	for _, other := range l.job.processes {
		if other.linker != nil {
			hooks++
		}
	}
	if hooks < MaxLinkerHooks {
		return true
	}
	if !t.said.unhooked {
		t.said.unhooked = true
		l.unhooked.Add(1)
	}
	return false
}

// Unhooked counts the processes whose dynamic linker has no hook.
func (l *libraries) Unhooked() int { return int(l.unhooked.Load()) }
