package tracer

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/symbolize/cpython"
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
	ended      bool // its process has ended; guarded by spaces.mu
}

// spaces are those of all traced processes, told by the manager, asked by the
// decoder.
type spaces struct {
	names *symbolize.Names
	mu    sync.Mutex
	byPID map[uint32]*space
}

func newSpaces() *spaces {
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
		made := &space{Space: s.names.Space(mappings)}
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

// stackTable knows the stacks of the session: those that the kernel has named,
// by its hash of the raw frames, and those that have a row, by what the frames
// are. It belongs to the decoder.
type stackTable struct {
	spaces       *spaces
	interpreters *interpreters
	kernel       func() *symbolize.KernelNames // read when the first kernel frame comes
	raw          recent[uint64, knownStack]
	quota        stackQuota
	rows         []Stack
	content      []byte // what the last stack was identified by, kept for its room
	naming       naming
	codeLabels   map[*cpython.Code]string
	totals       *StackTotals
}

// knownStack is a stack that the kernel has sent the frames of.
type knownStack struct {
	id         int64
	generation uint32 // of the process's space when they were named
	status     string
	refused    bool // beyond its process's quota: no row
}

// StackTotals counts the samples and spans that have a stack, by how complete
// it is.
type StackTotals struct {
	Complete   uint64
	Incomplete map[string]uint64 // by stack.status
	Unresolved uint64            // whose frames were lost on the way
	Refused    uint64            // beyond what a recording, or a process, may have
	Memo       MemoTotals        // of the spans' stacks
}

func newStackTable(spaces *spaces, totals *StackTotals) *stackTable {
	totals.Incomplete = map[string]uint64{}
	return &stackTable{
		spaces: spaces, kernel: sync.OnceValue(symbolize.NewKernelNames), raw: newRecent[uint64, knownStack](maxResolved), quota: newStackQuota(MaxStacks),
		totals: totals, codeLabels: map[*cpython.Code]string{},
	}
}

// resolve turns the kernel's name of a stack into the stack's id, and counts
// it; nil when its frames have not come.
func (t *stackTable) resolve(raw uint64) *int64 {
	known, ok := t.raw.get(raw)
	switch {
	case !ok:
		t.totals.Unresolved++
		return nil
	case known.refused:
		t.totals.Refused++
		return nil
	}
	if known.status == StackComplete {
		t.totals.Complete++
	} else {
		t.totals.Incomplete[known.status]++
	}
	return &known.id
}

// idOf is resolve for a row beside the one that counts.
func (t *stackTable) idOf(raw uint64) *int64 {
	if raw == 0 {
		return nil
	}
	known, ok := t.raw.get(raw)
	if !ok || known.refused {
		return nil
	}
	return &known.id
}

// add takes the frames of a stack. They come again in each epoch, which is
// news only if the process has mapped something else meanwhile.
func (t *stackTable) add(r *stackRecord) {
	generation := uint32(0)
	space := t.spaces.of(r.Tgid)
	if space != nil {
		generation = space.generation.Load()
	}
	if known, ok := t.raw.get(r.Id); ok && known.generation == generation {
		return
	}
	frames, whole := t.frames(r, space)
	status := stackStatus(unwinding.Outcome(r.NativeOutcome), python.Outcome(r.PythonOutcome))
	id := t.identify(frames, status)
	if !whole { // asked again when its frames come again
		generation--
	}
	first, ok := t.quota.admit(r.Tgid, id)
	t.raw.put(r.Id, knownStack{id, generation, status, !ok})
	if first {
		t.rows = append(t.rows, Stack{ID: id, Frames: frames, Folded: symbolize.FoldLabels(t.naming.labels), Status: status, Inferred: inferredFrames(r)})
	}
}

// forget drops what is known of a process that has ended.
func (t *stackTable) forget(pid uint32) {
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
func (t *stackTable) identify(frames []symbolize.Frame, status string) int64 {
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
	if status != StackComplete {
		text(status)
	}
	t.content = b
	sum := sha256.Sum256(b)
	return int64(binary.LittleEndian.Uint64(sum[:]) >> 1)
}

// writeIncomplete says how many samples and spans have a stack that does not
// reach down to its thread's start, and why.
func (s *Session) writeIncomplete(now int64) error {
	totals := &s.decoder.totals.Stacks
	for status, n := range totals.Incomplete {
		err := s.sink.Warning(Warning{TSNS: now, Kind: "incomplete", Source: status, Count: int64(n), Detail: statusDetail(status)})
		if err != nil {
			return err
		}
	}
	if s.walks != nil {
		for reason, n := range s.walks.interpreters.unresolved() {
			err := s.sink.Warning(Warning{TSNS: now, Kind: "incomplete", Source: reason, Count: int64(n), Detail: "Python frames without a name"})
			if err != nil {
				return err
			}
		}
	}
	if totals.Refused > 0 {
		err := s.sink.Warning(Warning{
			TSNS: now, Kind: "incomplete", Source: "stack_quota", Count: int64(totals.Refused),
			Detail: fmt.Sprintf("samples and spans without a stack: the recording, or their process, has had all of the different stacks that it may have (%d and a quarter of what was left)", MaxStacks),
		})
		if err != nil {
			return err
		}
	}
	if totals.Unresolved == 0 {
		return nil
	}
	return s.sink.Warning(Warning{
		TSNS: now, Kind: "incomplete", Source: stackUnresolved, Count: int64(totals.Unresolved),
		Detail: "samples and spans without a stack: its frames had not come, or were lost",
	})
}

// stackUnresolved is the loss that is found out when a stack is looked up.
const stackUnresolved = "stack_unresolved"
