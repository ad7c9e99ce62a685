// Package python finds the CPython of a live process: what the kernel's walk
// must know to follow its frames, and what names them afterwards. Only memory
// is read; the job is never stopped.
//
// The package is no part of the public API: it may change with any version.
package python

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/ebpfprof/ebpfprof/symbolize/cpython"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// ErrNoPython: the process maps no Python interpreter.
var ErrNoPython = errors.New("no Python interpreter is mapped")

// Interpreter is the CPython of one process. Close it when the process is gone.
type Interpreter struct {
	*cpython.Runtime
	// Resolver names what the walk found.
	Resolver *cpython.Resolver
	// Module is the name of the interpreter's file.
	Module string

	memory *process.Memory
}

// Open finds the interpreter of a process among its libraries. The errors are
// ErrNoPython, *cpython.UnsupportedError for interpreters that are refused,
// cpython.ErrNotInitialised for one that has only just been started (ask
// again), cpython.ErrNoRuntime, and those of reading.
func Open(p *process.Process, libraries []*process.Library) (*Interpreter, error) {
	return OpenWithin(cpython.SearchBudget(), p, libraries)
}

// OpenWithin is Open for who asks again: the budget is for all searches in this process.
// Beyond it the error wraps cpython.ErrBudget.
func OpenWithin(budget *cpython.Budget, p *process.Process, libraries []*process.Library) (*Interpreter, error) {
	if err := refuseByName(libraries); err != nil {
		return nil, err
	}
	found, err := p.Python(libraries)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, ErrNoPython
	}
	version, err := cpython.ParseVersion(found.Version)
	if err != nil {
		return nil, err
	}
	version.FreeThreaded = freeThreaded.MatchString(found.Library.Name())
	return open(budget, p, found.Library, version, libraries)
}

func open(budget *cpython.Budget, p *process.Process, library *process.Library, version cpython.Version,
	libraries []*process.Library) (*Interpreter, error) {
	file, err := library.OpenELF()
	if err != nil {
		return nil, fmt.Errorf("opening the interpreter: %w", err)
	}
	defer file.Close()
	bias, ok := library.Bias(file)
	if !ok {
		return nil, fmt.Errorf("finding where %s is mapped: no executable segment", library.Path)
	}
	libc, musl := openLibc(libraries)
	if libc != nil {
		defer libc.Close()
	}
	memory, err := process.OpenMemory(p.PID)
	if err != nil {
		return nil, fmt.Errorf("reading the memory of pid %d: %w", p.PID, err)
	}
	var rt *cpython.Runtime
	if guarded := elf.Guard(func() {
		rt, err = cpython.Discover(memory, cpython.Image{File: file, Bias: bias, Version: version, Libc: libc, Musl: musl, Budget: budget})
	}); guarded != nil {
		err = guarded
	}
	if err != nil {
		memory.Close()
		return nil, fmt.Errorf("finding the interpreter of pid %d: %w", p.PID, err)
	}
	return &Interpreter{rt, cpython.NewResolver(rt, memory), library.Name(), memory}, nil
}

// Close ends the reading of the process's memory.
func (i *Interpreter) Close() error { return i.memory.Close() }

var (
	freeThreaded = regexp.MustCompile(`^(lib)?python3\.\d+d?t`)
	libcName     = regexp.MustCompile(`^(libc\.so\.6|libc-2\.\d+\.so)$`)
	libpthread   = regexp.MustCompile(`^libpthread(-2\.\d+\.so|\.so\.0)$`)
	muslName     = regexp.MustCompile(`^((ld-musl-.*|libc\.musl-.*)\.so\.1|libc\.so)$`) // the last in Debian
)

// refuseByName knows the interpreters that bear another name than CPython.
func refuseByName(libraries []*process.Library) error {
	for _, l := range libraries {
		name := l.Name()
		switch {
		case strings.HasPrefix(name, "libpypy"), strings.HasPrefix(name, "pypy"):
			return &cpython.UnsupportedError{Flavour: cpython.FlavourPyPy}
		case strings.HasPrefix(name, "libpythonvm"), strings.HasPrefix(name, "graalpy"):
			return &cpython.UnsupportedError{Flavour: cpython.FlavourGraalPy}
		}
	}
	return nil
}

// openLibc opens the file that says how struct pthread is laid out: libpthread
// where there is one that is not a mere name, else libc. nil where neither is
// mapped or can be opened: the usual layout is tried, and verified.
func openLibc(libraries []*process.Library) (file *elf.File, musl bool) {
	var libc *process.Library
	for _, l := range libraries {
		switch {
		case muslName.MatchString(l.Name()):
			libc, musl = l, true
		case libcName.MatchString(l.Name()):
			libc = l
		}
	}
	for _, l := range libraries {
		if !libpthread.MatchString(l.Name()) {
			continue
		}
		if e, err := l.OpenELF(); err == nil {
			ok := false
			_ = elf.Guard(func() { _, ok = e.Lookup("_thread_db_pthread_specific") })
			if ok {
				return e, musl
			}
			e.Close()
		}
	}
	if libc == nil {
		return nil, musl
	}
	e, err := libc.OpenELF()
	if err != nil {
		return nil, musl // deleted by an upgrade, perhaps
	}
	return e, musl
}
