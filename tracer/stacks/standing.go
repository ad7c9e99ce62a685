package stacks

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"runtime"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/python"
	"github.com/ebpfprof/ebpfprof/tracer/unwinding"
)

// mostStandingFrames of each kind are kept of a thread that stands still.
const mostStandingFrames = 128

// Standing is a thread that did not run while its stack was taken from outside.
type Standing struct {
	bpf.TasksTaskRegisters
	// SinceNS is from when on it is known not to have run, CLOCK_MONOTONIC; 0: it has run
	// a moment before or after.
	SinceNS int64

	native unwinding.Stack
	python python.Stack
}

// Standing takes the stacks of some threads of one process from outside, and stops
// none: the caller looks at their registers again, to know that they stood still. It may
// be called from any goroutine.
func (w *Walks) Standing(pid int, threads []bpf.TasksTaskRegisters) ([]Standing, error) {
	file, err := process.OpenMemory(pid)
	if err != nil {
		return nil, fmt.Errorf("reading the memory of pid %d: %w", pid, err)
	}
	defer file.Close()
	memory := &pages{file: file, known: map[uint64][]byte{}}
	rules := unwinding.RulesOf(w.unwinder, pid)
	var walker *python.Walker
	known := w.interpreters.of(uint32(pid))
	if known != nil && known.python != nil {
		if walker, err = known.python.Walker(); err != nil {
			walker = nil
		}
	}
	var all []Standing
	for i := range threads {
		t := &threads[i]
		start := unwinding.Start{PythonWalkWalkStart: bpf.PythonWalkWalkStart(t.Start), ProbePage: t.ProbePage}
		for _, p := range t.Pending {
			if p.Stack != 0 {
				start.Pending = append(start.Pending, unwinding.PendingReturn{Stack: p.Stack, Address: p.Address})
			}
		}
		s := Standing{TasksTaskRegisters: *t, native: rules.Walk(ownMachine(), &start, memory.read, mostStandingFrames),
			python: python.NoInterpreter()}
		if walker != nil {
			from := bpf.PythonWalkWalkStart(t.Start)
			from.NsTid = from.Tid
			if !w.interpreters.guarded(known, uint32(pid), func() { s.python = walker.Walk(&from, memory.read, mostStandingFrames) }) {
				s.python, walker = python.NoInterpreter(), nil
			}
		}
		all = append(all, s)
	}
	return all, nil
}

func ownMachine() elf.Machine {
	if runtime.GOARCH == "arm64" {
		return elf.MachineARM64
	}
	return elf.MachineX86_64
}

// pages are those of a process that one look has read.
type pages struct {
	file  *process.Memory
	known map[uint64][]byte // nil: not there
}

const (
	pageBytes = 4096
	mostPages = 1 << 13 // of a process, in one look
)

// read is a Memory.
func (p *pages) read(address uint64, to []byte) bool {
	for len(to) > 0 {
		page := p.page(address &^ (pageBytes - 1))
		if page == nil {
			return false
		}
		n := copy(to, page[address%pageBytes:])
		address, to = address+uint64(n), to[n:]
	}
	return true
}

func (p *pages) page(at uint64) []byte {
	page, ok := p.known[at]
	if ok || len(p.known) >= mostPages || at>>63 != 0 {
		return page
	}
	page = make([]byte, pageBytes)
	if _, err := p.file.ReadAt(page, int64(at)); err != nil {
		page = nil
	}
	p.known[at] = page
	return page
}

// AddStanding gives a thread's stack a row, if it has none yet, and returns its id; nil
// beyond what the recording, or the process, may have.
func (t *Table) AddStanding(s *Standing) *int64 {
	r := stackRecord{
		SampleStackRecord: &bpf.SampleStackRecord{
			Kind: uint8(bpf.CallRecordKindRECORD_STACK), PythonOutcome: uint8(s.python.Outcome), NativeOutcome: uint8(s.native.Outcome),
			Native: uint16(len(s.native.Frames)), Python: uint16(len(s.python.Frames)), Segments: uint16(len(s.python.Segments)),
			Tgid: s.Start.Tgid, Sp: s.native.SP,
		},
		native: s.native.Frames, python: s.python.Frames, segments: s.python.Segments,
	}
	r.Id = r.hash()
	t.Add(&r)
	return t.IDOf(r.Id)
}

// hash names a stack as the kernel does: by its frames, in another space of names, never 0,
// and with the lowest bits free.
func (r *stackRecord) hash() uint64 {
	const free = 2 // STACK_FREE_BITS
	sum := fnv.New64a()
	_ = binary.Write(sum, binary.LittleEndian, []uint32{r.Tgid, uint32(r.NativeOutcome), uint32(r.PythonOutcome)})
	for _, f := range r.native {
		_ = binary.Write(sum, binary.LittleEndian, f.Pc)
	}
	for _, f := range r.python {
		_ = binary.Write(sum, binary.LittleEndian, f)
	}
	return max(sum.Sum64()>>free, 1) << free
}
