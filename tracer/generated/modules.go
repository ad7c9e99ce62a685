package generated

import "github.com/ebpfprof/ebpfprof/tracer/cache"

// maxModules are known at once, of all processes.
const maxModules = 1 << 10

// Modules are the generated modules of the traced processes: each is read once, when the
// first of its lines is asked for or before, while the job still runs. It belongs to the
// decoder.
type Modules struct {
	known cache.Recent[module, map[int]Kernel]
	read  ReadFile
}

// ReadFile reads a file that a process names, if it has at most limit bytes.
type ReadFile func(pid int, path string, limit int64) ([]byte, error)

// module is a file as one process names it.
type module struct {
	pid  uint32
	path string
}

// NewModules knows of none.
func NewModules(read ReadFile) *Modules {
	return &Modules{known: cache.NewRecent[module, map[int]Kernel](maxModules), read: read}
}

// Prepare reads a file before one of its lines is asked for: a job that ends may take its
// generated modules with it.
func (m *Modules) Prepare(pid uint32, path string) { m.calls(module{pid, path}) }

func (m *Modules) calls(key module) map[int]Kernel {
	calls, ok := m.known.Get(key)
	if ok {
		return calls
	}
	if source, err := m.read(int(key.pid), key.path, maxModule); err == nil {
		calls = Kernels(source)
	}
	m.known.Put(key, calls)
	return calls
}

// Kernel is what a line of a file calls that a process has imported; not ok where the
// file can not be read, or calls none there. Where no comment says which operators the
// kernel replaces its name does: known says of which names there is an operator.
func (m *Modules) Kernel(pid uint32, path string, line int, known func(name string) bool) (Kernel, bool) {
	calls := m.calls(module{pid, path})
	kernel, ok := calls[line]
	if ok && kernel.Operators == nil && !kernel.asked {
		kernel.Operators, kernel.asked = Operators(kernel.Name, known), true
		calls[line] = kernel
	}
	return kernel, ok
}
