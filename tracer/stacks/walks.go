package stacks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cilium/ebpf"

	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/footprint"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/unwinding"
)

// Walks keep what the two walks in the kernel know of the traced processes
// right, and what names the frames that they find. They belong to the manager.
type Walks struct {
	unwinder     *unwinding.Unwinder
	interpreters *interpreters
	spaces       *spaces
	warn         func(event.Warning)
	kept         *footprint.Accounts
	added        map[int]bool
}

// Tables are what the walks look up in the kernel.
type Tables struct {
	Unwind      *unwinding.Maps
	UnwindBytes int       // what unwind tables may take; a default if 0
	Runtimes    *ebpf.Map // python_runtimes
	Changed     func()    // is called after each change
	// Kept counts what is kept of each process.
	Kept *footprint.Accounts
}

// NewWalks makes them, and tells the table of stacks of their interpreters. The caller
// must Close them.
func NewWalks(tables Tables, stacks *Table, warn func(event.Warning)) *Walks {
	w := &Walks{
		unwinder: unwinding.New(tables.Unwind, unwinding.Options{
			Cache: UnwindCache(), MemoryBytes: tables.UnwindBytes, Changed: tables.Changed, Kept: tables.Kept,
		}),
		interpreters: newInterpreters(tables.Runtimes, tables.Changed, tables.Kept, warn),
		spaces:       stacks.spaces, warn: warn, kept: tables.Kept, added: map[int]bool{},
	}
	stacks.interpreters = w.interpreters
	return w
}

// UnwindCache keeps the compiled tables from one recording to the next; nothing
// where there is no place for it.
func UnwindCache() unwind.Cache {
	directory, err := os.UserCacheDir()
	if err != nil {
		return unwind.Cache{Infer: unwinding.Infer}
	}
	return unwind.Cache{Directory: filepath.Join(directory, "ebpfprof", "unwind"), Infer: unwinding.Infer}
}

// Mapped takes what a process maps now.
func (w *Walks) Mapped(p *process.Process, libraries []*process.Library) {
	update := func() error { return w.unwinder.UpdateProcess(p.PID) }
	if !w.added[p.PID] {
		w.added[p.PID] = true
		update = func() error { return w.unwinder.AddProcess(p) }
	}
	if err := update(); err != nil && !errors.Is(err, process.ErrExited) && !errors.Is(err, process.ErrNotFound) {
		w.warn(event.Warning{TSNS: time.Now().UnixNano(), Kind: "unwind", Source: fmt.Sprint(p.PID), Count: 1, Detail: "no native frames: " +
			err.Error()})
	}
	w.spaces.mapped(p)
	w.interpreters.mapped(p, libraries)
}

// Execed forgets the program that a process ran before.
func (w *Walks) Execed(pid int) {
	w.Ended(pid)
	w.spaces.execed(pid)
	w.interpreters.execed(pid)
}

// Ended takes a process out of the kernel's tables; its names stay good.
func (w *Walks) Ended(pid int) {
	delete(w.added, pid)
	_ = w.unwinder.RemoveProcess(pid)
	w.interpreters.ended(pid)
	w.spaces.ended(pid)
	w.kept.Ended(pid)
}

// Remapped looks again at a process whose libraries are the same: its interpreter may
// be ready by now.
func (w *Walks) Remapped(p *process.Process, libraries []*process.Library) {
	w.interpreters.mapped(p, libraries)
}

// Wait returns when the unwind tables of the code that is known so far are made, or
// when it is closed; progress is how many are.
func (w *Walks) Wait()                    { w.unwinder.Wait() }
func (w *Walks) Progress() (done, of int) { return w.unwinder.Progress() }

// Unresolved counts the Python frames without a name, by reason. It may be asked of nil.
func (w *Walks) Unresolved() map[string]uint64 {
	if w == nil {
		return nil
	}
	return w.interpreters.unresolved()
}

// Unnamed counts what limits have cost: frames in files that were closed to make room
// for others, functions whose names take too long to demangle.
func (w *Walks) Unnamed() (closed, mangled uint64) { return w.spaces.names.Lost() }

// Refused counts the files without an unwind table for want of room.
func (w *Walks) Refused() unwinding.Refused { return w.unwinder.Refused() }

// Used says how full the unwind tables are.
func (w *Walks) Used() unwinding.Used { return w.unwinder.Used() }

// Kept is how many bytes are kept of the process of which most are.
func (w *Walks) Kept() int { return w.kept.Most() }

// Held is how many processes something is known of.
func (w *Walks) Held() (spaces, interpreters int) {
	w.spaces.mu.Lock()
	spaces = len(w.spaces.byPID)
	w.spaces.mu.Unlock()
	w.interpreters.mu.Lock()
	defer w.interpreters.mu.Unlock()
	return spaces, len(w.interpreters.byPID) + len(w.interpreters.gone)
}

func (w *Walks) Close() {
	w.unwinder.Close()
	w.interpreters.close()
	w.spaces.names.Close()
}
