package unwinding

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

const pageBytes = 4096

// mapping is an entry of a process's table.
type mapping struct {
	start, end uint64
	file       uint32
	address    uint64 // of the file, at start
	generated  bool   // memory in which a program can have made code
}

// processTable is the kernel's table of one process.
type processTable struct {
	process  *process.Process
	mappings []mapping
	files    map[*file]bool
	inodes   map[inode]bool
	compat   bool
	dropped  int // mappings beyond what an entry holds
	unmapped int // mappings of files that do not say at which address they are

	generated *generated    // nil until it was looked at
	looked    time.Duration // what the last look took
}

// read makes the table from the process's maps as they are now.
func (u *Unwinder) read(p *process.Process) (*processTable, error) {
	code, err := p.Code()
	if err != nil {
		return nil, err
	}
	t := &processTable{process: p, files: map[*file]bool{}, inodes: map[inode]bool{}}
	u.files.reading = t.files
	for _, c := range code {
		if c.Start >= math.MaxInt64 {
			continue // the vsyscall page
		}
		t.add(u, c)
	}
	t.limit()
	return t, nil
}

func (t *processTable) add(u *Unwinder, c process.Code) {
	m := mapping{start: c.Start, end: c.End, file: anonymous, generated: c.Library == nil || strings.HasPrefix(c.Library.Path, "/memfd:")}
	var f *file
	switch {
	case c.Library != nil:
		f = u.files.find(c.Library, u.quotas.of(t.process.PID))
		t.inodes[inode{c.Library.Device, c.Library.Inode}] = true
	case c.Name == "[vdso]":
		f = u.files.vdso(c.End - c.Start)
	case c.Name != "" && c.Name[0] == '[' && !isNamedAnonymous(c.Name):
		return // the kernel's own, as [uprobes]: an address there is no frame
	}
	if f != nil {
		t.files[f] = true
		t.compat = t.compat || f.compat
		address, ok := f.addressAt(c.FileOffset)
		if !ok || f.number == 0 {
			// Code that no file describes: no ELF file, or no segment of it.
			t.unmapped++
		} else {
			m.file, m.address = f.number, address
		}
	}
	if n := len(t.mappings); m.file == anonymous && n > 0 && t.mappings[n-1].file == anonymous && t.mappings[n-1].end == m.start &&
		t.mappings[n-1].generated == m.generated {
		t.mappings[n-1].end = m.end
		return
	}
	t.mappings = append(t.mappings, m)
}

// isNamedAnonymous: memory that its process gave a name, prctl(PR_SET_VMA_ANON_NAME).
func isNamedAnonymous(name string) bool { return len(name) > 6 && name[:6] == "[anon:" }

// limit keeps what an entry of the kernel's map holds: files before generated
// code, large before small.
func (t *processTable) limit() {
	const most = maxMappings - 1 // the first entry is no mapping
	if len(t.mappings) <= most {
		return
	}
	t.dropped = len(t.mappings) - most
	slices.SortStableFunc(t.mappings, func(a, b mapping) int {
		if (a.file == anonymous) != (b.file == anonymous) {
			return cmp.Compare(b.file, a.file)
		}
		return cmp.Compare(b.end-b.start, a.end-a.start)
	})
	t.mappings = t.mappings[:most]
	slices.SortFunc(t.mappings, func(a, b mapping) int { return cmp.Compare(a.start, b.start) })
}

func (t *processTable) entry() *bpf.NativeWalkUnwindProcess {
	e := &bpf.NativeWalkUnwindProcess{Count: uint32(len(t.mappings) + 1)}
	if t.compat {
		e.Flags = uint32(bpf.NativeWalkUnwindProcessFlagPROCESS_COMPAT)
	}
	for i := range e.Start {
		e.Start[i] = math.MaxInt64
	}
	e.Start[0] = 0
	for i, m := range t.mappings {
		if m.file == anonymous {
			if address, ok := t.generated.at(m); ok {
				m.file, m.address = t.generated.file.number, address
			}
		}
		e.Start[i+1] = m.start
		e.Mapping[i+1].File = m.file
		e.Mapping[i+1].Page = uint32(m.address / pageBytes)
		e.Mapping[i+1].Pages = uint32((m.end - m.start) / pageBytes)
	}
	return e
}

// load gives the kernel the table of a process, in place of the one before.
func (u *Unwinder) load(t *processTable) error {
	pid := t.process.PID
	old := u.processes[pid]
	if old != nil {
		t.generated, t.looked = old.generated, old.looked
	}
	if err := u.tables.putProcess(pid, t.entry()); err != nil {
		return fmt.Errorf("writing the mappings of pid %d: %w", pid, err)
	}
	u.options.Changed()
	u.processes[pid] = t
	for f := range t.files {
		f.mappers[pid] = true
	}
	if old != nil {
		u.leave(old, t)
	}
	u.look(pid)
	return nil
}

// leave takes a process off the files that it maps no more. An inode that no process
// maps may be another file's tomorrow.
func (u *Unwinder) leave(old, now *processTable) {
	for f := range old.files {
		if now == nil || !now.files[f] {
			delete(f.mappers, old.process.PID)
			f.unused = time.Now()
			if !u.closed {
				u.files.abandon(f)
			}
		}
	}
	for id := range old.inodes {
		mapped := false
		for _, t := range u.processes {
			mapped = mapped || t.inodes[id]
		}
		if !mapped {
			delete(u.files.byInode, id)
		}
	}
}

func (u *Unwinder) unload(pid int) error {
	t := u.processes[pid]
	if t == nil {
		return nil
	}
	delete(u.processes, pid)
	delete(u.queue.spent, pid)
	delete(u.quotas.shares, pid)
	u.leave(t, nil)
	if err := u.tables.deleteProcess(pid); err != nil {
		return fmt.Errorf("removing the mappings of pid %d: %w", pid, err)
	}
	u.room.drop(t.generated)
	u.charge(pid, nil, t.generated)
	u.options.Changed()
	return nil
}
