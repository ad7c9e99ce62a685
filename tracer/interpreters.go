package tracer

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cilium/ebpf"

	"github.com/ebpfprof/ebpfprof/symbolize/cpython"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/python"
)

// interpreters are the CPythons of the traced processes: found by the manager,
// which tells the kernel's walk of them, and asked for names by the decoder.
type interpreters struct {
	kernel  *ebpf.Map // python_runtimes
	changed func()    // called after each change of it
	warn    func(Warning)

	mu    sync.Mutex
	byPID map[uint32]*interpreter
	gone  []*interpreter // of processes that have ended, for their counts
}

// interpreter is the one of a process; python is nil where there is none, or
// none that is understood.
type interpreter struct {
	python *python.Interpreter
	module string // the name of its file
}

func newInterpreters(kernel *ebpf.Map, changed func(), warn func(Warning)) *interpreters {
	return &interpreters{kernel: kernel, changed: changed, warn: warn, byPID: map[uint32]*interpreter{}}
}

// mapped looks for the interpreter of a process that has mapped something new.
func (i *interpreters) mapped(p *process.Process, libraries []*process.Library) {
	if known := i.of(uint32(p.PID)); known != nil {
		return
	}
	found, err := python.Open(p, libraries)
	switch {
	case errors.Is(err, python.ErrNoPython), errors.Is(err, cpython.ErrNotInitialised):
		return // it may come yet
	case err != nil:
		i.refuse(p, err)
		return
	}
	value, err := found.KernelValue()
	if err == nil {
		err = i.kernel.Put(uint32(p.PID), value)
	}
	if err != nil {
		found.Close()
		i.refuse(p, err)
		return
	}
	i.changed()
	i.set(p.PID, &interpreter{found, interpreterModule(p, libraries)})
}

// refuse remembers that a process's interpreter is of no use. One whose process
// ended meanwhile is nobody's concern.
func (i *interpreters) refuse(p *process.Process, err error) {
	i.set(p.PID, &interpreter{})
	if !p.Alive() {
		return
	}
	i.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "python", Source: fmt.Sprint(p.PID), Count: 1, Detail: "no Python frames: " + err.Error()})
}

func interpreterModule(p *process.Process, libraries []*process.Library) string {
	if found, err := p.Python(libraries); err == nil && found != nil {
		return found.Library.Name()
	}
	return ""
}

func (i *interpreters) set(pid int, found *interpreter) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.byPID[uint32(pid)] = found
}

func (i *interpreters) of(pid uint32) *interpreter {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.byPID[pid]
}

// execed forgets the program that a process ran before.
func (i *interpreters) execed(pid int) {
	i.ended(pid)
	i.mu.Lock()
	defer i.mu.Unlock()
	if old := i.byPID[uint32(pid)]; old != nil {
		i.gone = append(i.gone, old)
		delete(i.byPID, uint32(pid))
	}
}

// ended takes a process out of the kernel's table. Its names stay good.
func (i *interpreters) ended(pid int) {
	_ = i.kernel.Delete(uint32(pid))
	i.changed()
}

// unresolved counts the Python frames without a name, by reason. It is called
// once nothing is resolved any more.
func (i *interpreters) unresolved() map[string]uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	counts := map[string]uint64{}
	count := func(known *interpreter) {
		if known.python == nil {
			return
		}
		for reason, n := range known.python.Resolver.Unresolved {
			if n > 0 {
				counts[cpython.Unresolved(reason).Name()] += n
			}
		}
	}
	for _, known := range i.byPID {
		count(known)
	}
	for _, known := range i.gone {
		count(known)
	}
	return counts
}

func (i *interpreters) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, known := range i.byPID {
		if known.python != nil {
			known.python.Close()
		}
	}
	for _, known := range i.gone {
		if known.python != nil {
			known.python.Close()
		}
	}
}
