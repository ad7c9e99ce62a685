// Package stacks knows the stacks of a recording: which the kernel has named, what
// their frames are called, which have a row. It owns the two walks' tables of the
// traced processes (unwind tables, interpreters), and what each process has mapped.
//
// Walks belong to the goroutine that follows the processes, a Table to that which
// decodes; where the two meet, in Spaces and in the interpreters, there is a mutex.
//
// The package is no part of the public API: it may change with any version.
package stacks

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/symbolize/cpython"
	"github.com/ebpfprof/ebpfprof/tracer/cache"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/python"
	"github.com/ebpfprof/ebpfprof/tracer/unwinding"
)

// space is the code that one traced process has mapped.
type space struct {
	*symbolize.Space
	// generation counts the changes: what an address was called before one need
	// not be what it is called after it.
	generation atomic.Uint32
	user       uint32 // whose process it is, when it was first seen
	ended      bool   // its process has ended; guarded by spaces.mu
}

// changes is the space's generation now; of nil, too.
func (s *space) changes() uint32 {
	if s == nil {
		return 0
	}
	return s.generation.Load()
}

// spaces are those of all traced processes, told by the manager, asked by the
// decoder.
type spaces struct {
	names *symbolize.Names
	mu    sync.Mutex // between the manager and the decoder
	byPID map[uint32]*space
}

func NewSpaces() *spaces {
	return &spaces{names: symbolize.NewNames(), byPID: map[uint32]*space{}}
}

// mapped takes what a process maps now.
func (s *spaces) mapped(p *process.Process) {
	mappings, err := p.Mappings()
	if err != nil {
		return // it has exited: what is known of it stays good
	}
	known := s.current(uint32(p.PID))
	if known == nil {
		made := &space{Space: s.names.Space(mappings), user: process.User(p.PID)}
		s.mu.Lock()
		s.byPID[uint32(p.PID)] = made
		s.mu.Unlock()
		return
	}
	if known.Update(mappings) {
		known.generation.Add(1)
	}
}

// execed forgets the program that a process ran before.
func (s *spaces) execed(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byPID, uint32(pid))
}

// ended notes that a process is gone. Its last stacks may still be in the ring: what
// it had mapped is forgotten when those have been read, or when another process has
// its pid.
func (s *spaces) ended(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.byPID[uint32(pid)]; known != nil {
		known.ended = true
	}
}

// forget drops what a process had mapped that has ended.
func (s *spaces) forget(pid uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.byPID[pid]; known != nil && known.ended {
		delete(s.byPID, pid)
	}
}

// current is of, of a process that has not ended.
func (s *spaces) current(pid uint32) *space {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.byPID[pid]; known != nil && !known.ended {
		return known
	}
	return nil
}

func (s *spaces) of(pid uint32) *space {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byPID[pid]
}

// Table knows the stacks of the session: those that the kernel has named,
// by its hash of the raw frames, and those that have a row, by what the frames
// are. It belongs to the decoder.
type Table struct {
	spaces       *spaces
	interpreters *interpreters
	kernel       func() *symbolize.KernelNames // read when the first kernel frame comes
	raw          cache.Recent[uint64, cachedStack]
	quota        stackQuota
	rows         []event.Stack
	content      []byte // what the last stack was identified by, kept for its room
	naming       naming
	totals       *Totals
}

// cachedStack is a stack that the kernel has sent the frames of.
type cachedStack struct {
	id         int64
	python     int64  // of its Python frames alone, of a call's; 0: none
	caller     Caller // of a call
	generation uint32 // of the process's space when they were named
	status     string
	refused    bool // beyond its process's quota: no row
}

// Totals counts the samples and spans that have a stack, by how complete
// it is.
type Totals struct {
	Complete   uint64
	Incomplete map[string]uint64 // by stack.status
	Unresolved uint64            // whose frames were lost on the way
	Refused    uint64            // beyond what a recording, or a process, may have
	Rows       uint64            // different stacks that have a row
	// RefusedUser is of whom the most different stacks had no row, MostRefused how many.
	RefusedUser uint32
	MostRefused int
}

func NewTable(spaces *spaces, totals *Totals) *Table {
	totals.Incomplete = map[string]uint64{}
	return &Table{
		spaces: spaces, kernel: sync.OnceValue(symbolize.NewKernelNames), raw: cache.NewRecent[uint64, cachedStack](maxResolved),
		quota:        NewStackQuota(MaxStacks),
		interpreters: newInterpreters(nil, func() {}, nil, func(event.Warning) {}), totals: totals,
	}
}

// Beside says how to run what takes long while a stack is named: the reading of symbol
// tables. What is run does not touch the table.
func Beside(t *Table, run func(slow func())) {
	t.spaces.names.Beside = run
	read := sync.OnceValue(symbolize.NewKernelNames)
	var names *symbolize.KernelNames
	t.kernel = func() *symbolize.KernelNames {
		if names == nil {
			run(func() { names = read() })
		}
		return names
	}
}

// SetLimit says how many different stacks have a row at the most; MaxStacks by default.
func (t *Table) SetLimit(most int) { t.quota.limit = most }

// TakeRows returns the rows of the stacks that are new, for the sink; they are good
// until the next stack is added.
func (t *Table) TakeRows() []event.Stack {
	rows := t.rows
	t.rows = t.rows[:0]
	t.totals.Rows = uint64(len(t.quota.Seen))
	t.totals.RefusedUser, t.totals.MostRefused = t.quota.mostRefused()
	return rows
}

// Resolve turns the kernel's name of a stack into the stack's id, and counts
// it; nil when its frames have not come.
func (t *Table) Resolve(raw uint64) *int64 {
	known, ok := t.raw.Get(raw)
	switch {
	case !ok:
		t.totals.Unresolved++
		return nil
	case known.refused:
		t.totals.Refused++
		return nil
	}
	if known.status == event.StackComplete {
		t.totals.Complete++
	} else {
		t.totals.Incomplete[known.status]++
	}
	return &known.id
}

// IDOf is resolve for a row beside the one that counts.
func (t *Table) IDOf(raw uint64) *int64 {
	if raw == 0 {
		return nil
	}
	known, ok := t.raw.Get(raw)
	if !ok || known.refused {
		return nil
	}
	return &known.id
}

// Add takes the frames of a stack. They come again in each epoch, which is
// news only if the process has mapped something else meanwhile.
func (t *Table) Add(r *stackRecord) {
	space := t.spaces.of(r.Tgid)
	generation := space.changes()
	if known, ok := t.raw.Get(r.Id); ok && known.generation == generation {
		return
	}
	frames, whole := t.frames(r, space)
	status := stackStatus(unwinding.Outcome(r.NativeOutcome), python.Outcome(r.PythonOutcome))
	id := t.identify(frames, status)
	if !whole { // asked again when its frames come again
		generation--
	}
	owner := ownerOf(r, space)
	first, ok := t.quota.Admit(owner, id)
	if first {
		t.rows = append(t.rows, event.Stack{ID: id, Frames: frames, Folded: symbolize.FoldLabels(t.naming.labels), Status: status,
			Inferred: inferredFrames(r)})
	}
	t.raw.Put(r.Id, cachedStack{id, t.pythonFrames(r, owner, frames, id, ok), callerOf(r, frames), generation, status, !ok})
}

// ReadPython reads the names of a stack's Python code, so that Add need not, by when the
// code may be gone. It returns the code that a call comes from; nil where that is not
// told, where it was before, and for stacks of samples.
func ReadPython(t *Table, r *stackRecord) (caller *cpython.Code) {
	if len(r.python) == 0 {
		return nil
	}
	if known, ok := t.raw.Get(r.Id); ok && known.generation == t.spaces.of(r.Tgid).changes() {
		return nil
	}
	if python := t.interpreters.of(r.Tgid); python != nil && python.python != nil {
		for i, f := range r.python {
			code := python.python.Resolver.Read(f.Code, f.Checksum)
			if i == 0 && r.OfCall != 0 {
				caller = code
			}
		}
	}
	return caller
}

// ownerOf is who pays for a stack's row.
func ownerOf(r *stackRecord, space *space) Owner {
	o := Owner{PID: r.Tgid, User: process.UnknownUser}
	if space != nil {
		o.User = space.user
	}
	return o
}

// Forget drops what is known of a process that has ended.
func (t *Table) Forget(pid uint32) {
	t.quota.ended(pid)
	t.spaces.forget(pid)
	if t.interpreters != nil {
		t.interpreters.forget(pid)
	}
}

// inferredFrames counts the frames that no table led to.
func inferredFrames(r *stackRecord) (n int32) {
	const inferred = uint32(bpf.SampleNativeFlagNATIVE_INFERRED | bpf.SampleNativeFlagNATIVE_FRAME_POINTER)
	for i := range r.native {
		if r.native[i].Flags&inferred != 0 {
			n++
		}
	}
	return n
}

// identify hashes what the frames are: not what they are called, where a build
// id and an offset say it better, so that names can be filled in later. An
// incomplete stack is another than the same frames of a complete one. Operators
// follow from the native frames.
func (t *Table) identify(frames []symbolize.Frame, status string) int64 {
	b := t.content[:0]
	text := func(part string) { b = append(append(b, part...), 0) }
	for i := range frames {
		f := &frames[i]
		n := f.Offset
		switch {
		case f.Kind == symbolize.Op:
			continue
		case f.Kind == symbolize.Python:
			text("python")
			text(f.File)
			text(f.Function)
			n = int64(f.Line)
		case f.BuildID != "":
			text(string(f.Kind))
			text(f.BuildID)
		default:
			text(string(f.Kind))
			text(f.Module)
			text(f.Function)
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	if status != event.StackComplete {
		text(status)
	}
	t.content = b
	sum := sha256.Sum256(b)
	return int64(binary.LittleEndian.Uint64(sum[:]) >> 1)
}

// StackUnresolved is the loss that is found out when a stack is looked up.
const StackUnresolved = "stack_unresolved"
