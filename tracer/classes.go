package tracer

import (
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/mapped"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// classes names autograd nodes by their vtable pointers. The nodes of PyTorch
// itself have theirs in libtorch_cpu and libtorch_python; those of extensions
// wherever they were compiled, so every library of the process is looked at,
// each one's symbols once.
type classes struct {
	// files have the mangled names of vtables: there are 22,000, and a job uses a
	// few dozen.
	files *mapped.Files[map[uint64]string]
	known map[uint32]map[uint64]string // by pid and vtable; "" for an address that is in no vtable
}

func newClasses() *classes {
	return &classes{files: mapped.New(vtables), known: map[uint32]map[uint64]string{}}
}

// mapped tells which libraries a process has now.
func (c *classes) mapped(pid int, libraries []*process.Library) {
	c.files.Lock()
	defer c.files.Unlock()
	if c.files.HasEnded(uint32(pid)) {
		delete(c.known, uint32(pid))
	}
	c.files.Mapped(uint32(pid), libraries)
	for vtable, name := range c.known[uint32(pid)] {
		if name == "" {
			delete(c.known[uint32(pid)], vtable) // it may lie in a library that is new
		}
	}
}

// ended notes that a process is gone, Forget that its last records have been read.
func (c *classes) ended(pid int) { c.files.Ended(uint32(pid)) }

func (c *classes) Forget(pid uint32) {
	c.files.Lock()
	defer c.files.Unlock()
	if c.files.Forget(pid) {
		delete(c.known, pid)
	}
}

// Class implements classNamer.
func (c *classes) Class(pid uint32, vtable uint64) (string, bool) {
	c.files.Lock()
	defer c.files.Unlock()
	known := c.known[pid]
	if known == nil || len(known) >= maxClasses {
		known = map[uint64]string{}
		c.known[pid] = known
	}
	name, ok := known[vtable]
	if !ok {
		name = c.find(pid, vtable)
		known[vtable] = name
	}
	return name, name != ""
}

func (c *classes) find(pid uint32, vtable uint64) string {
	for _, library := range c.files.Libraries(pid) {
		if _, ok := library.FileOffset(vtable); !ok {
			continue
		}
		file, ok := c.files.Open(library)
		if !ok {
			return ""
		}
		bias, ok := library.Bias(file.ELF)
		if !ok {
			return ""
		}
		class, _ := symbolize.VTableClass(file.Made[vtable-bias])
		return class
	}
	return ""
}

func (c *classes) close() { c.files.Close() }

// vtables maps the address points of a file's vtables to their symbols.
func vtables(e *symbolize.ELF) map[uint64]string {
	names := map[uint64]string{}
	for _, s := range e.ObjectsWithPrefix(symbolize.VTablePrefix) {
		names[s.Address+symbolize.VTableAddressPoint] = s.Name
	}
	return names
}
