package generated

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/cache"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

const (
	// maxModules are known at once, of all processes.
	maxModules = 1 << 10
	// maxBeside are the modules read for one library, those of its time first.
	maxBeside = 32
	// maxApart is how long before or after a library its module was written: the C++
	// compiler has all of a model's kernels to compile in between.
	maxApart = time.Hour
	// maxLooking is how long the modules of one process are looked for, in all. Inductor's
	// directory may hold those of years; what is not found there is read with its first call.
	maxLooking = 250 * time.Millisecond
)

// Modules are the generated modules of the traced processes: each is read once, while the
// job still runs: when a library is mapped that was generated with it, or when one of its
// lines is asked for. The methods are safe for concurrent use.
type Modules struct {
	files Files

	mu        sync.Mutex // between the manager, which reports mappings, and the decoder, which asks for them
	known     cache.Recent[module, *lines]
	processes map[uint32]*looking
}

// Files are those that processes name.
type Files struct {
	// Read reads a file if it has at most limit bytes.
	Read func(pid int, path string, limit int64) ([]byte, error)
	// List lists a directory.
	List func(pid int, path string) ([]process.Entry, error)
	// Ours reports whether a process names the same files as we do.
	Ours func(pid int) bool
	// Self is our own process.
	Self int
}

// ProcessFiles are those of the processes here.
func ProcessFiles() Files {
	return Files{Read: process.ReadFile, List: process.ListDirectory, Ours: process.SharesFiles, Self: os.Getpid()}
}

// module is a file as one process names it: by its whole path, or, where it was found
// beside a library, by the end of it. Inductor calls a module by its content.
type module struct {
	pid    uint32
	path   string
	beside bool
}

// lines are what a module calls; failed says that it could not be read when it was last
// tried.
type lines struct {
	calls  map[int]Kernel
	failed bool
	asked  uint64 // how often, since it could not be read
}

// looking is what was done for one process. It belongs to the manager, but for ours.
type looking struct {
	ours      bool
	libraries map[string]bool // that were looked beside
	read      map[string]bool // modules, by their whole path
	spent     time.Duration
}

// NewModules knows of none.
func NewModules(files Files) *Modules {
	return &Modules{files: files, known: cache.NewRecent[module, *lines](maxModules), processes: map[uint32]*looking{}}
}

// Prepare reads a file before one of its lines is asked for: a job that ends may take its
// generated modules with it.
func (m *Modules) Prepare(pid uint32, path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines(module{pid: pid, path: path})
}

// lines are those of a module. One that could not be read is tried again, after as many
// calls as there were until then: it may not have been the process's fault. The lock is held.
func (m *Modules) lines(key module) map[int]Kernel {
	known, ok := m.known.Get(key)
	if ok && !known.failed {
		return known.calls
	}
	if tail, ok := m.known.Get(module{key.pid, tailOf(key.path), true}); ok {
		return tail.calls
	}
	if !ok {
		known = &lines{}
		m.known.Put(key, known)
	}
	if known.asked++; known.asked&(known.asked-1) != 0 {
		return nil
	}
	source, err := m.files.Read(int(key.pid), key.path, maxModule)
	if err != nil {
		// A process that has gone has no files, but what it named may be there yet.
		if of := m.processes[key.pid]; of != nil && of.ours {
			source, err = m.files.Read(m.files.Self, key.path, maxModule)
		}
	}
	if known.failed = err != nil; !known.failed {
		known.calls = Kernels(source)
	}
	return known.calls
}

// Kernel is what a line of a file calls that a process has imported; not ok where the
// file can not be read, or calls none there. Where no comment says which operators the
// kernel replaces its name does: known says of which names there is an operator.
func (m *Modules) Kernel(pid uint32, path string, line int, known func(name string) bool) (Kernel, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls := m.lines(module{pid: pid, path: path})
	kernel, ok := calls[line]
	if ok && kernel.Operators == nil && !kernel.asked {
		kernel.Operators, kernel.asked = Operators(kernel.Name, known), true
		calls[line] = kernel
	}
	return kernel, ok
}

// Began and Ended make Modules a listener of processes.
func (*Modules) Began(int) {}

// Ended comes before the last calls of a process are read: Forget does.
func (*Modules) Ended(int) {}

// Forget forgets a process whose calls have been read.
func (m *Modules) Forget(pid uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.processes, pid)
}

// Mapped reads the modules beside the generated libraries that a process maps now. By when
// the first of their calls is decoded the job may have ended, and taken them with it.
func (m *Modules) Mapped(pid int, libraries []*process.Library) {
	for _, library := range libraries {
		if root, ok := rootOf(library.Path); ok {
			m.beside(pid, root, library)
		}
	}
}

// rootOf is the directory in which Inductor keeps what it generates, if a library's path
// is one of its: ROOT/xy/KEY.main.so.
func rootOf(path string) (root string, ok bool) {
	directory, name := filepath.Split(path)
	directory = filepath.Clean(directory)
	return filepath.Dir(directory), len(filepath.Base(directory)) == 2 && strings.HasSuffix(name, ".so") && filepath.IsAbs(path)
}

// tailOf is how a module is called within that directory.
func tailOf(path string) string {
	return filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path))
}

// beside reads what was generated with a library.
func (m *Modules) beside(pid int, root string, library *process.Library) {
	m.mu.Lock()
	of := m.processes[uint32(pid)]
	if of == nil {
		of = &looking{ours: m.files.Ours(pid), libraries: map[string]bool{}, read: map[string]bool{}}
		m.processes[uint32(pid)] = of
	}
	m.mu.Unlock()
	if of.libraries[library.Path] || of.spent > maxLooking {
		return
	}
	of.libraries[library.Path] = true
	began := time.Now()
	late := func() bool { return of.spent+time.Since(began) > maxLooking }
	defer func() { of.spent += time.Since(began) }()
	for _, path := range m.written(pid, root, library.Path, late) {
		if of.read[path] || late() {
			continue
		}
		of.read[path] = true
		source, err := m.files.Read(pid, path, maxModule)
		if err != nil {
			continue
		}
		if calls := Kernels(source); len(calls) > 0 {
			m.mu.Lock()
			m.known.Put(module{uint32(pid), tailOf(path), true}, &lines{calls: calls})
			m.mu.Unlock()
		}
	}
}

// written are the modules of Inductor's directory that were written at about the same time
// as a library, the nearest first.
func (m *Modules) written(pid int, root, library string, late func() bool) (paths []string) {
	type candidate struct {
		path  string
		apart time.Duration
	}
	beside, err := m.files.List(pid, filepath.Dir(library))
	at := slices.IndexFunc(beside, func(e process.Entry) bool { return e.Name == filepath.Base(library) })
	if err != nil || at < 0 {
		return nil
	}
	when := beside[at].Modified
	directories, _ := m.files.List(pid, root)
	var found []candidate
	for _, d := range directories {
		// A directory is as young as the last file that came into it.
		if !d.Directory || len(d.Name) != 2 || d.Modified.Before(when.Add(-maxApart)) || late() {
			continue
		}
		files, _ := m.files.List(pid, filepath.Join(root, d.Name))
		for _, f := range files {
			if apart := f.Modified.Sub(when).Abs(); strings.HasSuffix(f.Name, ".py") && apart <= maxApart {
				found = append(found, candidate{filepath.Join(root, d.Name, f.Name), apart})
			}
		}
	}
	slices.SortFunc(found, func(a, b candidate) int { return cmp.Compare(a.apart, b.apart) })
	for _, f := range found[:min(len(found), maxBeside)] {
		paths = append(paths, f.path)
	}
	return paths
}
