package accel

import (
	"cmp"
	"slices"
	"sync"

	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// callers says whose code an address is in: of a kernel that has no name, which
// library launched it is known still (cuBLAS, NCCL, the program itself where
// the runtime is linked into it).
type callers struct {
	mu   sync.Mutex             // between the manager, which tells what is mapped, and the decoder, which asks
	code map[uint32][]codeRange // sorted by address
}

// codeRange is an executable mapping of a file.
type codeRange struct {
	start, end uint64
	name       string
}

func newCallers() *callers { return &callers{code: map[uint32][]codeRange{}} }

// mapped tells which libraries a process has now.
func (c *callers) mapped(pid int, libraries []*process.Library) {
	var code []codeRange
	for _, l := range libraries {
		for _, s := range l.Segments {
			if s.Executable {
				code = append(code, codeRange{s.Start, s.End, l.Name()})
			}
		}
	}
	slices.SortFunc(code, func(a, b codeRange) int { return cmp.Compare(a.start, b.start) })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.code[uint32(pid)] = code
}

// library is the base name of the file that an address is code of; not ok for
// code that is in no file.
func (c *callers) library(pid uint32, address uint64) (name string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	code := c.code[pid]
	i, exact := slices.BinarySearchFunc(code, address, func(r codeRange, at uint64) int { return cmp.Compare(r.start, at) })
	if !exact {
		i--
	}
	if i < 0 || address >= code[i].end {
		return "", false
	}
	return code[i].name, true
}

func (c *callers) ended(pid uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.code, pid)
}
