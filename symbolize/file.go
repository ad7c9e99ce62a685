package symbolize

import (
	"container/list"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/demangle"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/symbolize/threadclock"
	"github.com/ebpfprof/ebpfprof/symbolize/torch"
)

// maxCached bounds the frames and names in the cache of a File.
const maxCached = 1 << 17

// File names the code of one executable file. Its methods are safe for
// concurrent use.
type File struct {
	layout  *elf.File // where its code lies, also while it is closed; nil: it could not be read
	module  string
	buildID string

	open   *openFiles // that may close it; nil where it stays open
	reopen func() (*elf.File, error)
	beside func(slow func()) // Names.Beside; may be nil
	// Guarded by openFiles.
	place      *list.Element
	indexBytes int

	mu        sync.Mutex
	elf       *elf.File // nil while it is closed
	err       error     // why it can not be read
	lost      bool      // closed, and its inode is another file's by now
	slow      time.Duration
	functions *elf.FunctionIndex
	names     map[uint64]string // by the function's start
	frames    map[uint64]Frame
	operators map[string]torch.OperatorName // by class; nil until one is asked for
	calls     map[uint64]string             // what Operator said, by address
}

// NewFile names the code of an ELF file, which must stay open. The path is
// for its name alone.
func NewFile(e *elf.File, path string) *File {
	f := &File{layout: e, elf: e, module: filepath.Base(path), names: map[uint64]string{}, frames: map[uint64]Frame{}}
	f.err = elf.Guard(func() { f.buildID = e.FileID() })
	return f
}

// unreadable stands for a file that could not be opened: its frames have no
// function and no build id.
func unreadable(path string, err error) *File {
	return &File{err: err, module: filepath.Base(path), frames: map[uint64]Frame{}}
}

// BuildID is elf.File.FileID, "" when the file could not be read.
func (f *File) BuildID() string { return f.buildID }

// Err is why the file has no names: it could not be opened, is no ELF file, or
// was cut short while it was mapped (ErrTruncated).
func (f *File) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Frame names the code at a virtual address of the file. The first call on a
// file reads its symbol tables, 0.1 s for the largest.
func (f *File) Frame(address uint64) Frame {
	f.mu.Lock()
	defer f.mu.Unlock()
	if frame, ok := f.frames[address]; ok {
		return frame
	}
	frame := Frame{Kind: Native, Module: f.module, BuildID: f.buildID, Offset: int64(address)}
	switch f.load() {
	case nil:
		f.slowly(f.functions == nil, func() { frame.Function = f.function(address) })
		f.touch()
	case errEvicted:
		f.open.unnamed.Add(1)
		return frame
	}
	if len(f.frames) >= maxCached {
		clear(f.frames)
	}
	f.frames[address] = frame
	return frame
}

// Operator is the operator whose call function the code at a virtual address
// is ("aten::addmm", of at::_ops::addmm::call), "" for other code. The first
// operator asked for reads all the file's schemas, 40 ms for libtorch_cpu.
func (f *File) Operator(address uint64) (name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.load() != nil || f.functions == nil {
		return ""
	}
	if known, ok := f.calls[address]; ok {
		return known
	}
	f.slowly(f.operators == nil, func() {
		s, _ := f.functions.Covering(address)
		class, method, ok := torch.OperatorClass(s.Name)
		if !ok || method != "call" {
			return
		}
		if f.operators == nil {
			f.operators = torch.OperatorNames(f.elf)
		}
		name = f.operators[class].Op
	})
	if f.calls == nil || len(f.calls) >= maxCached {
		f.calls = map[uint64]string{}
	}
	f.calls[address] = name
	return name
}

// slowly runs something that reads the file, and where it is long, beside what else there
// is to do: all symbols of a framework's libraries are a hundred megabytes, which are given
// back. The file's lock is held.
func (f *File) slowly(long bool, read func()) {
	guarded := func() { f.err = elf.Guard(read) }
	if long && f.beside != nil {
		f.beside(func() { elf.Sparing(guarded) })
		return
	}
	guarded()
}

func (f *File) function(address uint64) string {
	if f.functions == nil {
		f.functions = f.elf.IndexFunctions()
	}
	if s, ok := f.functions.Covering(address); ok {
		return f.cached(s.Address, func() string { return f.demangle(s.Name) })
	}
	if name, ok := f.elf.PLTTargetWithin(address); ok {
		return f.demangle(name) + "@plt"
	}
	if start, _, ok := f.elf.Extent(address); ok {
		return f.cached(start, func() string { return fmt.Sprintf("%s+%#x%s", f.module, start, namelessSuffix) })
	}
	return ""
}

// maxSlow is the CPU time that a file's names may take to demangle, in all: those of a
// wheel's libtorch take 3 µs each. Later names stay mangled.
const maxSlow = 2 * time.Second

// demangle is demangle.Short within the file's time.
func (f *File) demangle(name string) string {
	if f.slow > maxSlow {
		if f.open != nil {
			f.open.mangled.Add(1)
		}
		return demangle.Clip(name)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadclock.Now()
	defer func() { f.slow += threadclock.Now() - began }()
	return demangle.Short(name)
}

// cached keeps one string per function, however many addresses it has.
func (f *File) cached(start uint64, name func() string) string {
	known, ok := f.names[start]
	if !ok {
		if len(f.names) >= maxCached {
			clear(f.names)
		}
		known = name()
		f.names[start] = known
	}
	return known
}
