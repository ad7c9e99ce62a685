package tracer

import (
	"crypto/sha256"
	"encoding/binary"
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
	known := s.of(uint32(p.PID))
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
	raw          map[uint64]knownStack
	seen         map[int64]bool
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
}

// StackTotals counts the samples and spans that have a stack, by how complete
// it is.
type StackTotals struct {
	Complete   uint64
	Incomplete map[string]uint64 // by stack.status
	Unresolved uint64            // whose frames were lost on the way
	Memo       MemoTotals        // of the spans' stacks
}

func newStackTable(spaces *spaces, totals *StackTotals) *stackTable {
	totals.Incomplete = map[string]uint64{}
	return &stackTable{
		spaces: spaces, kernel: sync.OnceValue(symbolize.NewKernelNames), raw: map[uint64]knownStack{}, seen: map[int64]bool{},
		totals: totals, codeLabels: map[*cpython.Code]string{},
	}
}

// resolve turns the kernel's name of a stack into the stack's id, and counts
// it; nil when its frames have not come.
func (t *stackTable) resolve(raw uint64) *int64 {
	known, ok := t.raw[raw]
	if !ok {
		t.totals.Unresolved++
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
	if known, ok := t.raw[raw]; ok && raw != 0 {
		return &known.id
	}
	return nil
}

// add takes the frames of a stack. They come again in each epoch, which is
// news only if the process has mapped something else meanwhile.
func (t *stackTable) add(r *stackRecord) {
	generation := uint32(0)
	space := t.spaces.of(r.Tgid)
	if space != nil {
		generation = space.generation.Load()
	}
	if known, ok := t.raw[r.Id]; ok && known.generation == generation {
		return
	}
	if len(t.raw) >= maxWaiting {
		clear(t.raw)
	}
	frames, whole := t.frames(r, space)
	status := stackStatus(unwinding.Outcome(r.NativeOutcome), python.Outcome(r.PythonOutcome))
	id := t.identify(frames, status)
	if !whole { // asked again when its frames come again
		generation--
	}
	t.raw[r.Id] = knownStack{id, generation, status}
	if !t.seen[id] {
		t.seen[id] = true
		t.rows = append(t.rows, Stack{ID: id, Frames: frames, Folded: symbolize.FoldLabels(t.naming.labels), Status: status, Inferred: inferredFrames(r)})
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
