package tracer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/unwinding"
)

// walks keep what the two walks in the kernel know of the traced processes
// right, and what names the frames that they find. They belong to the manager.
type walks struct {
	unwinder     *unwinding.Unwinder
	interpreters *interpreters
	spaces       *spaces
	warn         func(Warning)
	added        map[int]bool
}

func newWalks(k *kernel, stacks *stackTable, warn func(Warning)) *walks {
	w := &walks{
		unwinder:     unwinding.New(k.unwind, unwinding.Options{Cache: UnwindCache(), Changed: k.memo.forget}),
		interpreters: newInterpreters(k.shared("python_runtimes"), k.memo.forget, warn),
		spaces:       stacks.spaces, warn: warn, added: map[int]bool{},
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

// mapped takes what a process maps now.
func (w *walks) mapped(p *process.Process, libraries []*process.Library) {
	update := func() error { return w.unwinder.UpdateProcess(p.PID) }
	if !w.added[p.PID] {
		w.added[p.PID] = true
		update = func() error { return w.unwinder.AddProcess(p) }
	}
	if err := update(); err != nil && !errors.Is(err, process.ErrExited) && !errors.Is(err, process.ErrNotFound) {
		w.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "unwind", Source: fmt.Sprint(p.PID), Count: 1, Detail: "no native frames: " + err.Error()})
	}
	w.spaces.mapped(p)
	w.interpreters.mapped(p, libraries)
}

// execed forgets the program that a process ran before.
func (w *walks) execed(pid int) {
	w.ended(pid)
	w.spaces.execed(pid)
	w.interpreters.execed(pid)
}

// ended takes a process out of the kernel's tables; its names stay good.
func (w *walks) ended(pid int) {
	delete(w.added, pid)
	_ = w.unwinder.RemoveProcess(pid)
	w.interpreters.ended(pid)
	w.spaces.ended(pid)
}

func (w *walks) close() {
	w.unwinder.Close()
	w.interpreters.close()
	w.spaces.names.Close()
}
