package mapped

import (
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/symbolize/torch"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// Classes names autograd nodes by their vtable pointers. The nodes of PyTorch
// itself have theirs in libtorch_cpu and libtorch_python; those of extensions
// wherever they were compiled, so every library of the process is looked at,
// each one's symbols once.
type Classes struct {
	// files have the mangled names of vtables: there are 22,000, and a job uses a
	// few dozen.
	files *Files[map[uint64]string]
	known map[uint32]map[uint64]string // by pid and vtable; "" for an address that is in no vtable
}

// NewClasses knows of no process.
func NewClasses() *Classes {
	return &Classes{files: New(vtables), known: map[uint32]map[uint64]string{}}
}

// Mapped tells which libraries a process has now.
func (c *Classes) Mapped(pid int, libraries []*process.Library) {
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

// Began implements job.Keeper: nothing is known of a process before its libraries.
func (c *Classes) Began(int) {}

// Ended notes that a process is gone.
func (c *Classes) Ended(pid int) { c.files.Ended(uint32(pid)) }

// Forget implements decode.Owner.
func (c *Classes) Forget(pid uint32) {
	c.files.Lock()
	defer c.files.Unlock()
	if c.files.Forget(pid) {
		delete(c.known, pid)
	}
}

// Class implements decode.ClassNamer.
func (c *Classes) Class(pid uint32, vtable uint64) (string, bool) {
	c.files.Lock()
	defer c.files.Unlock()
	known := c.known[pid]
	if known == nil || len(known) >= MaxClasses {
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

func (c *Classes) find(pid uint32, vtable uint64) string {
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
		class, _ := torch.VTableClass(file.Made[vtable-bias])
		return class
	}
	return ""
}

// Unopened counts the files that were not opened since too many are.
func (c *Classes) Unopened() uint64 { return c.files.Refused() }

// Processes counts those of which something is known.
func (c *Classes) Processes() int { return c.files.Processes() }

// Close closes the files.
func (c *Classes) Close() { c.files.Close() }

// MaxClasses are the vtables of one process whose names are kept.
const MaxClasses = 1 << 14

// vtables maps the address points of a file's vtables to their symbols.
func vtables(e *elf.File) map[uint64]string {
	names := map[uint64]string{}
	for _, s := range e.ObjectsWithPrefix(torch.VTablePrefix) {
		names[s.Address+torch.VTableAddressPoint] = s.Name
	}
	return names
}
