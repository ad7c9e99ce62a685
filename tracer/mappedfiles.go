package tracer

import (
	"fmt"
	"sync"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// mappedFiles are what the traced processes map, as the manager tells it, and what
// has been opened of that, as the decoder asks for it: that is what mu is for. A file
// is closed when the last process that maps it is forgotten.
type mappedFiles[T any] struct {
	index func(*elf.File) T // what is made of a file

	mu        sync.Mutex
	processes map[uint32]*mappingProcess
	files     map[fileKey]*mappedFile[T]
	refused   uint64 // files that were not opened: too many are
}

// mappingProcess is one process's libraries.
type mappingProcess struct {
	libraries []*process.Library
	ended     bool
}

// mappedFile is a file that at least one process maps.
type mappedFile[T any] struct {
	users  int
	tried  bool
	elf    *elf.File // nil: not opened, or it could not be
	opened T
}

func newMappedFiles[T any](index func(*elf.File) T) mappedFiles[T] {
	return mappedFiles[T]{index: index, processes: map[uint32]*mappingProcess{}, files: map[fileKey]*mappedFile[T]{}}
}

func keyOfLibrary(l *process.Library) fileKey { return fileKey{l.Device, l.Inode} }

// mapped takes what a process maps now.
func (m *mappedFiles[T]) mapped(pid uint32, libraries []*process.Library) {
	before := m.processes[pid]
	for _, l := range libraries {
		f := m.files[keyOfLibrary(l)]
		if f == nil {
			f = &mappedFile[T]{}
			m.files[keyOfLibrary(l)] = f
		}
		f.users++
	}
	m.processes[pid] = &mappingProcess{libraries: libraries}
	m.release(before)
}

// release takes a process off its files.
func (m *mappedFiles[T]) release(p *mappingProcess) {
	if p == nil {
		return
	}
	for _, l := range p.libraries {
		f := m.files[keyOfLibrary(l)]
		if f.users--; f.users > 0 {
			continue
		}
		if f.elf != nil {
			f.elf.Close()
		}
		delete(m.files, keyOfLibrary(l))
	}
}

// ended notes that a process is gone; what it mapped is still asked for until forget.
func (m *mappedFiles[T]) ended(pid uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.processes[pid]; p != nil {
		p.ended = true
	}
}

// forgotten drops a process that has ended, and reports whether it was there.
func (m *mappedFiles[T]) forgotten(pid uint32) bool {
	p := m.processes[pid]
	if p == nil || !p.ended {
		return false
	}
	delete(m.processes, pid)
	m.release(p)
	return true
}

// libraries are those of a process.
func (m *mappedFiles[T]) libraries(pid uint32) []*process.Library {
	if p := m.processes[pid]; p != nil {
		return p.libraries
	}
	return nil
}

// open opens a file that a process maps, the first time.
func (m *mappedFiles[T]) open(library *process.Library) (f *mappedFile[T], ok bool) {
	f = m.files[keyOfLibrary(library)]
	if f == nil {
		return nil, false
	}
	if !f.tried {
		f.tried = true
		if m.openNow() >= maxOpenLibraries {
			m.refused++
			return nil, false
		}
		e, err := library.OpenELF()
		if err != nil {
			return nil, false
		}
		var made T
		if elf.Guard(func() { made = m.index(e) }) != nil { // it was cut short
			e.Close()
			return nil, false
		}
		f.elf, f.opened = e, made
	}
	return f, f.elf != nil
}

// openNow counts the files that are open.
func (m *mappedFiles[T]) openNow() (n int) {
	for _, f := range m.files {
		if f.elf != nil {
			n++
		}
	}
	return n
}

// unopened says how many libraries were not opened to name what is in them.
func (s *Session) unopened() []Warning {
	return []Warning{{
		Kind: "incomplete", Source: "library_quota", Count: int64(s.classes.files.refused + s.stubs.files.refused),
		Detail: fmt.Sprintf("libraries beyond the %d that are open at once: autograd nodes and kernels that are in them have no name", maxOpenLibraries),
	}}
}

func (m *mappedFiles[T]) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.files {
		if f.elf != nil {
			f.elf.Close()
		}
	}
	clear(m.files)
	clear(m.processes)
}
