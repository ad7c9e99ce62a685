package stacks

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/cilium/ebpf"

	"github.com/ebpfprof/ebpfprof/symbolize/cpython"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/footprint"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/python"
)

// interpreters are the CPythons of the traced processes: found by the manager,
// which tells the kernel's walk of them, and asked for names by the decoder.
type interpreters struct {
	kernel  *ebpf.Map           // python_runtimes
	changed func()              // called after each change of it
	kept    *footprint.Accounts // nil: nobody counts
	warn    func(event.Warning)
	search  map[int]*cpython.Budget // of processes whose interpreter was not found yet; the manager's

	mu    sync.Mutex // between the manager and the decoder
	byPID map[uint32]*interpreter
	gone  []*interpreter    // that nothing more will be asked of, once the rings are read
	lost  map[string]uint64 // frames without a name, by reason, of those that are closed
	// broken are warnings of processes whose interpreter misled us: the decoder finds
	// them, the manager writes them.
	broken []event.Warning
}

// interpreter is the one of a process; python is nil where there is none, or
// none that is understood.
type interpreter struct {
	python *python.Interpreter
	module string // the name of its file
	ended  bool   // its process is gone; guarded by interpreters.mu
}

func newInterpreters(kernel *ebpf.Map, changed func(), kept *footprint.Accounts, warn func(event.Warning)) *interpreters {
	return &interpreters{
		kernel: kernel, changed: changed, kept: kept, warn: warn, search: map[int]*cpython.Budget{},
		byPID: map[uint32]*interpreter{}, lost: map[string]uint64{},
	}
}

// mapped looks for the interpreter of a process that has mapped something new.
func (i *interpreters) mapped(p *process.Process, libraries []*process.Library) {
	i.warnBroken()
	if i.has(uint32(p.PID)) {
		return
	}
	budget := i.search[p.PID]
	if budget == nil {
		budget = cpython.SearchBudget()
		i.search[p.PID] = budget
	}
	var (
		found *python.Interpreter
		err   error
	)
	if !i.guarded(nil, uint32(p.PID), func() { found, err = python.OpenWithin(budget, p, libraries) }) {
		return
	}
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
	if i.kept != nil {
		found.Resolver.Charge(i.kept.Of(p.PID))
	}
	i.changed()
	i.set(p.PID, &interpreter{python: found, module: found.Module})
}

// guarded runs what reads structures of a process's interpreter. They are the job's, and a
// mistake of ours about them is a panic: it costs that process its Python frames, and nothing
// else. false: there was one. known is the interpreter that was read, nil while it is looked for.
func (i *interpreters) guarded(known *interpreter, pid uint32, read func()) (ok bool) {
	defer func() {
		cause := recover()
		if ok = cause == nil; ok {
			return
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		if now := i.byPID[pid]; now == known {
			i.retire(pid)
			i.byPID[pid] = &interpreter{ended: now != nil && now.ended}
		}
		i.broken = append(i.broken, event.Warning{TSNS: time.Now().UnixNano(), Kind: "python", Source: fmt.Sprint(pid), Count: 1,
			Detail: fmt.Sprintf("no Python frames from here on: what its interpreter says of itself made no sense: %v", cause)})
	}()
	read()
	return true
}

// warnBroken writes the warnings of interpreters that misled us, and takes them out of the
// kernel's table.
func (i *interpreters) warnBroken() {
	i.mu.Lock()
	broken := i.broken
	i.broken = nil
	i.mu.Unlock()
	for _, warning := range broken {
		if pid, err := strconv.Atoi(warning.Source); err == nil && i.kernel != nil {
			_ = i.kernel.Delete(uint32(pid))
			i.changed()
		}
		i.warn(warning)
	}
}

// refuse remembers that a process's interpreter is of no use. One whose process
// ended meanwhile needs nothing.
func (i *interpreters) refuse(p *process.Process, err error) {
	i.set(p.PID, &interpreter{})
	if !p.Alive() {
		return
	}
	i.warn(event.Warning{TSNS: time.Now().UnixNano(), Kind: "python", Source: fmt.Sprint(p.PID), Count: 1, Detail: "no Python frames: " +
		err.Error()})
}

func (i *interpreters) set(pid int, found *interpreter) {
	delete(i.search, pid)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.retire(uint32(pid))
	i.byPID[uint32(pid)] = found
}

// has reports whether the interpreter of a process that has not ended was found, or
// Refused.
func (i *interpreters) has(pid uint32) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	known := i.byPID[pid]
	return known != nil && !known.ended
}

// retire takes an interpreter out of the table. The decoder may be in the middle of
// asking it: it closes it itself.
func (i *interpreters) retire(pid uint32) {
	if old := i.byPID[pid]; old != nil {
		i.gone = append(i.gone, old)
		delete(i.byPID, pid)
	}
}

// forget closes the interpreter of a process that has ended, and those that have
// made way for others. It is the decoder's, when the rings have been read.
func (i *interpreters) forget(pid uint32) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if known := i.byPID[pid]; known != nil && known.ended {
		i.retire(pid)
	}
	for _, old := range i.gone {
		old.count(i.lost)
		if old.python != nil {
			old.python.Resolver.Forget()
			old.python.Close()
		}
	}
	i.gone = i.gone[:0]
}

// count adds the Python frames that could not be named, by reason.
func (i *interpreter) count(to map[string]uint64) {
	if i.python == nil {
		return
	}
	for reason, n := range i.python.Resolver.Unresolved {
		if n > 0 {
			to[cpython.Unresolved(reason).Name()] += n
		}
	}
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
	i.retire(uint32(pid))
}

// ended takes a process out of the kernel's table. Its names stay good until the
// rings have been read.
func (i *interpreters) ended(pid int) {
	_ = i.kernel.Delete(uint32(pid))
	i.changed()
	delete(i.search, pid)
	i.mu.Lock()
	defer i.mu.Unlock()
	if known := i.byPID[uint32(pid)]; known != nil {
		known.ended = true
	}
}

// unresolved counts the Python frames without a name, by reason. It is called
// once nothing is resolved any more.
func (i *interpreters) unresolved() map[string]uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	counts := maps.Clone(i.lost)
	for _, known := range i.byPID {
		known.count(counts)
	}
	for _, known := range i.gone {
		known.count(counts)
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
