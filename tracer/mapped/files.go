// Package mapped keeps what is made of the files that the traced processes map, each file
// once: which functions it has, which vtables. A file is opened when something in it is
// asked for, and closed when the last process that maps it is forgotten.
//
// The package is no part of the public API: it may change with any version.
package mapped

import (
	"sync"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// MaxOpen are open at once.
const MaxOpen = 4096

// Files are the mapped files, with a T for each that is open. The manager tells what is
// mapped, and the decoder asks for what is in it: that is what the mutex is for, which
// all methods but Ended and Close want locked.
type Files[T any] struct {
	sync.Mutex
	index     func(*elf.File) T // what is made of a file
	processes map[uint32]*mapper
	files     map[process.FileID]*File[T]
	refused   uint64 // files that were not opened: too many are
}

// mapper is one process's libraries.
type mapper struct {
	libraries []*process.Library
	ended     bool
}

// File is one that at least one process maps.
type File[T any] struct {
	ELF   *elf.File // nil: not opened, or it could not be
	Made  T
	users int
	tried bool
}

// New takes what is made of a file that was opened.
func New[T any](index func(*elf.File) T) *Files[T] {
	return &Files[T]{index: index, processes: map[uint32]*mapper{}, files: map[process.FileID]*File[T]{}}
}

// Mapped takes what a process maps now.
func (m *Files[T]) Mapped(pid uint32, libraries []*process.Library) {
	before := m.processes[pid]
	for _, l := range libraries {
		f := m.files[l.ID()]
		if f == nil {
			f = &File[T]{}
			m.files[l.ID()] = f
		}
		f.users++
	}
	m.processes[pid] = &mapper{libraries: libraries}
	m.unmap(before)
}

// unmap takes a process off its files.
func (m *Files[T]) unmap(p *mapper) {
	if p == nil {
		return
	}
	for _, l := range p.libraries {
		f := m.files[l.ID()]
		if f.users--; f.users > 0 {
			continue
		}
		if f.ELF != nil {
			f.ELF.Close()
		}
		delete(m.files, l.ID())
	}
}

// Ended notes that a process is gone; what it mapped is still asked for until Forget.
func (m *Files[T]) Ended(pid uint32) {
	m.Lock()
	defer m.Unlock()
	if p := m.processes[pid]; p != nil {
		p.ended = true
	}
}

// HasEnded reports whether Ended was called for a process that is not forgotten.
func (m *Files[T]) HasEnded(pid uint32) bool {
	p := m.processes[pid]
	return p != nil && p.ended
}

// Forget drops a process that has ended, and reports whether it was there.
func (m *Files[T]) Forget(pid uint32) bool {
	if !m.HasEnded(pid) {
		return false
	}
	p := m.processes[pid]
	delete(m.processes, pid)
	m.unmap(p)
	return true
}

// Libraries are those of a process.
func (m *Files[T]) Libraries(pid uint32) []*process.Library {
	if p := m.processes[pid]; p != nil {
		return p.libraries
	}
	return nil
}

// Processes counts those that are not forgotten.
func (m *Files[T]) Processes() int { return len(m.processes) }

// Refused counts the files that were not opened since there were MaxOpen.
func (m *Files[T]) Refused() uint64 { return m.refused }

// Open opens a file that a process maps, the first time.
func (m *Files[T]) Open(library *process.Library) (f *File[T], ok bool) {
	f = m.files[library.ID()]
	if f == nil {
		return nil, false
	}
	if !f.tried {
		f.tried = true
		if m.openNow() >= MaxOpen {
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
		f.ELF, f.Made = e, made
	}
	return f, f.ELF != nil
}

// openNow counts the files that are open.
func (m *Files[T]) openNow() (n int) {
	for _, f := range m.files {
		if f.ELF != nil {
			n++
		}
	}
	return n
}

// Close closes all of them.
func (m *Files[T]) Close() {
	m.Lock()
	defer m.Unlock()
	for _, f := range m.files {
		if f.ELF != nil {
			f.ELF.Close()
		}
	}
	clear(m.files)
	clear(m.processes)
}
