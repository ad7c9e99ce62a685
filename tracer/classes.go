package tracer

import (
	"sync"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// classes names autograd nodes by their vtable pointers. The nodes of PyTorch
// itself have theirs in libtorch_cpu and libtorch_python; those of extensions
// wherever they were compiled, so every library of the process is looked at,
// each one's symbols once.
type classes struct {
	mu        sync.Mutex
	libraries map[uint32][]*process.Library
	tables    map[fileKey]*vtableFile
	known     map[classKey]string // "" for an address that is in no vtable
}

type classKey struct {
	pid    uint32
	vtable uint64
}

type vtableFile struct {
	file  *symbolize.ELF
	names map[uint64]string // mangled: there are 22,000, and a job uses a few dozen
}

func newClasses() *classes {
	return &classes{
		libraries: map[uint32][]*process.Library{}, tables: map[fileKey]*vtableFile{}, known: map[classKey]string{},
	}
}

// mapped tells which libraries a process has now.
func (c *classes) mapped(pid int, libraries []*process.Library) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.libraries[uint32(pid)] = libraries
	for key, name := range c.known {
		if name == "" && key.pid == uint32(pid) {
			delete(c.known, key) // it may lie in a library that is new
		}
	}
}

// Class implements classNamer.
func (c *classes) Class(pid uint32, vtable uint64) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := classKey{pid, vtable}
	name, ok := c.known[key]
	if !ok {
		name = c.find(pid, vtable)
		c.known[key] = name
	}
	return name, name != ""
}

func (c *classes) find(pid uint32, vtable uint64) string {
	for _, library := range c.libraries[pid] {
		if _, ok := library.FileOffset(vtable); !ok {
			continue
		}
		table := c.table(library)
		if table == nil {
			return ""
		}
		bias, ok := library.Bias(table.file)
		if !ok {
			return ""
		}
		class, _ := symbolize.VTableClass(table.names[vtable-bias])
		return class
	}
	return ""
}

func (c *classes) table(library *process.Library) *vtableFile {
	key := fileKey{library.Device, library.Inode}
	if t, ok := c.tables[key]; ok {
		return t
	}
	if len(c.tables) >= maxVTableFiles {
		c.close()
		clear(c.tables)
	}
	file, err := library.OpenELF()
	if err != nil {
		c.tables[key] = nil
		return nil
	}
	t := &vtableFile{file: file}
	if symbolize.Guard(func() { t.names = vtables(file) }) != nil {
		file.Close()
		t = nil
	}
	c.tables[key] = t
	return t
}

func (c *classes) close() {
	for _, t := range c.tables {
		if t != nil {
			t.file.Close()
		}
	}
}
