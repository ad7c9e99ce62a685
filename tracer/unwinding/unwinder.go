package unwinding

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
	"github.com/ebpfprof/ebpfprof/tracer/footprint"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// Options are how an Unwinder works. The zero value keeps nothing on disk.
type Options struct {
	Cache unwind.Cache
	// MemoryBytes bounds the tables in the kernel; 0 is 256 MiB, which is also
	// the most. PyTorch with CUDA needs some 15 MiB.
	MemoryBytes int
	// Changed is called after each change of what a walk finds, nil if nobody
	// caches what walks found.
	Changed func()
	// Kept counts what is kept of each process's generated code; nil: nobody counts.
	Kept *footprint.Accounts
}

// Unwinder keeps the kernel's tables right for the traced processes. Its methods
// may be called from any goroutine.
type Unwinder struct {
	tables  tables
	options Options

	mu        sync.Mutex // of what follows, between the callers, the worker and the watch
	room      *room
	files     files
	quotas    quotas
	queue     *queue
	processes map[int]*processTable
	closed    bool

	ended chan struct{}
	watch *watch
}

// New starts an Unwinder on maps that it alone writes. Close ends it; the maps
// stay the caller's.
func New(maps *Maps, options Options) *Unwinder { return newUnwinder(maps, options) }

func newUnwinder(to tables, options Options) *Unwinder {
	options.Cache.Infer = Infer
	if options.Changed == nil {
		options.Changed = func() {}
	}
	limit := maxShards
	if options.MemoryBytes > 0 {
		limit = min(limit, max(1, options.MemoryBytes/(shardLeaves*unwind.LeafBytes)))
	}
	u := &Unwinder{
		tables: to, options: options, room: newRoom(to, limit),
		quotas:    quotas{shares: map[int]*share{}, users: map[uint32]*share{}},
		processes: map[int]*processTable{}, ended: make(chan struct{}),
	}
	u.queue = newQueue(&u.mu)
	u.files = newFiles(u.room, u.queue)
	u.room.unused, u.room.evicted = u.files.unused, u.files.drop
	u.watch = startWatch(u)
	go worker{u}.run()
	return u
}

// AddProcess begins to unwind a process: its mappings are in the kernel when it
// returns, tables from the cache soon after, those of new files when they are
// compiled; until then its frames are found by frame pointer. The errors are
// those of process.Process.Libraries and of the maps.
func (u *Unwinder) AddProcess(p *process.Process) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	t, err := u.read(p)
	if err != nil {
		return err
	}
	return u.load(t)
}

// UpdateProcess reads the process's mappings again: after an exec, or when it
// loaded a library. It does nothing for a process that was not added.
func (u *Unwinder) UpdateProcess(pid int) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	old := u.processes[pid]
	if old == nil {
		return nil
	}
	t, err := u.read(old.process)
	if errors.Is(err, process.ErrExited) {
		return u.unload(pid)
	}
	if err != nil {
		return err
	}
	if slices.Equal(old.mappings, t.mappings) {
		return nil
	}
	return u.load(t)
}

// RemoveProcess forgets a process. The tables of its files stay for the next
// one until the room is needed.
func (u *Unwinder) RemoveProcess(pid int) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.unload(pid)
}

// Wait returns when no table is waiting to be made.
func (u *Unwinder) Wait() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for u.queue.left() > 0 && !u.closed {
		u.queue.idle.Wait()
	}
}

// Progress is how many of the tables that processes need are made, and of how many.
func (u *Unwinder) Progress() (done, of int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	left := u.queue.left()
	of = max(len(u.files.byInode), left)
	return of - left, of
}

// Close stops the worker and releases the tables; a walk after it finds none.
func (u *Unwinder) Close() {
	u.watch.stop()
	u.mu.Lock()
	if u.closed {
		u.mu.Unlock()
		return
	}
	u.closed = true
	for pid := range u.processes {
		_ = u.unload(pid)
	}
	u.queue.idle.Broadcast()
	close(u.queue.work)
	u.mu.Unlock()
	<-u.ended
	for _, f := range u.queue.files {
		f.elf.Close()
	}
	u.room.leaves.close()
}

// FileStatus is what became of one file's table.
type FileStatus struct {
	Path  string
	State State
	// Reason says why there is no table, nil for the other states.
	Reason error
	Rows   int
	Bytes  int           // in the kernel
	Took   time.Duration // to make it, or to fetch it from the cache
}

// ProcessStatus is what the kernel knows of one process.
type ProcessStatus struct {
	Files     []FileStatus // by path
	Mappings  int
	Anonymous int // mappings without a file: generated code
	// Generated are the rows inferred from generated code, GeneratedBytes what
	// they take in the kernel.
	Generated, GeneratedBytes int
	Dropped                   int  // mappings beyond what the kernel's table holds
	Compat                    bool // 32-bit code, which is not walked
}

// Status says how well a process can be unwound; not ok for one that was not added.
func (u *Unwinder) Status(pid int) (status ProcessStatus, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	t := u.processes[pid]
	if t == nil {
		return ProcessStatus{}, false
	}
	status = ProcessStatus{Mappings: len(t.mappings), Dropped: t.dropped, Compat: t.compat}
	for _, m := range t.mappings {
		if m.file == anonymous {
			status.Anonymous++
		}
	}
	if t.generated != nil && t.generated.file != nil {
		status.Generated, status.GeneratedBytes = t.generated.file.rows, t.generated.file.leaves()*unwind.LeafBytes
	}
	for f := range t.files {
		status.Files = append(status.Files, FileStatus{
			Path: f.path, State: f.state, Reason: f.reason, Rows: f.rows, Bytes: f.leaves() * unwind.LeafBytes, Took: f.took,
		})
	}
	slices.SortFunc(status.Files, func(a, b FileStatus) int { return strings.Compare(a.Path, b.Path) })
	return status, true
}

// Memory is how many bytes of kernel memory the images take, and how many of
// them are in use.
func (u *Unwinder) Memory() (allocated, used int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	allocated = u.room.leaves.bytes()
	used = allocated
	for _, r := range u.room.leaves.free {
		used -= r.count * unwind.LeafBytes
	}
	return allocated, used
}
