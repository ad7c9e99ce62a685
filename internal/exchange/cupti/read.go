package cupti

import (
	"errors"
	"io"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Counts say what the chunks of one process had in them, and what they lack.
type Counts struct {
	Chunks, Work, Calls int64
	Bad                 int64 // chunks, or records in them, that are none
	Missing             int64 // chunks that were handed over and did not come
	Dropped             int64 // records that CUPTI dropped
	Refused             int64 // buffers that it asked for when all were full
	Unknown             int64 // records of kinds that nobody asked for
	Unnamed             int64 // kernels whose name did not come
	Readings            int64 // of both clocks
	NarrowNS, WideNS    int64 // what a reading took, at the least and at the most
}

// Process is what is known of one process by the end.
type Process struct {
	Counts
	States []State
}

// Bounds of what is kept of one process.
const (
	mostNames     = 16384
	mostNameBytes = 16 << 20
	mostStates    = 16
)

// process is a process of which chunks are read.
type process struct {
	Process
	clock     clock
	names     map[uint64]string
	nameBytes int
	chunks    uint64 // by its own numbers: one more than the last
	earlier   Counts // of its programs before the one that it executes: a library begins to count with each
}

// Sink takes what is read.
type Sink interface {
	Work(Work) error
	Call(Call) error
}

// Read reads chunks to the end. Those of processes that are not wanted are counted, under 0.
func Read(r io.Reader, wanted func(pid int32) bool, to Sink) (map[int32]*Process, error) {
	all := map[int32]*process{}
	others := &Process{}
	var c event.ActivityChunk
	for {
		err := c.ReadNext(r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if !wanted(c.PID) {
			others.Chunks++
			continue
		}
		p := all[c.PID]
		if p == nil {
			p = &process{names: map[uint64]string{}}
			all[c.PID] = p
		}
		if err := p.chunk(c, to); err != nil {
			return nil, err
		}
	}
	found := map[int32]*Process{}
	for pid, p := range all {
		p.Readings, p.NarrowNS, p.WideNS = p.clock.readings, p.clock.narrow, p.clock.wide
		found[pid] = &p.Process
	}
	if others.Chunks > 0 {
		found[0] = others
	}
	return found, nil
}

func (p *process) chunk(c event.ActivityChunk, to Sink) (err error) {
	p.Chunks++
	if len(c.Bytes) >= chunkHeader {
		p.numbered(record(c.Bytes).u64(16))
	}
	if !records(c.Bytes, func(version uint32, r record) { err = errors.Join(err, p.record(c.PID, version, r, to)) }) {
		p.Bad++
	}
	return err
}

// numbered counts what is missing before a chunk, which is no more than could have come meanwhile.
func (p *process) numbered(n uint64) {
	if n == 0 && p.chunks > 0 { // the first chunk of a program
		p.chunks, p.earlier = 0, p.Counts
	}
	if n >= p.chunks && n-p.chunks < 1<<32 {
		p.Missing += int64(n - p.chunks)
		p.chunks = n + 1
	} else {
		p.Missing = max(p.Missing-1, 0) // it came later than the one after it
	}
}

func (p *process) record(pid int32, version uint32, r record, to Sink) error {
	ok := true
	switch r.kind() {
	case kindState:
		if len(p.States) < mostStates {
			p.States = append(p.States, r.state(pid, version))
		}
	case kindClock:
		ok = p.clock.read(r)
	case kindName:
		ok = p.name(r)
	case kindLost:
		e := &p.earlier
		p.Dropped, p.Refused, p.Unknown = count(e.Dropped, r.u64(8)), count(e.Refused, r.u64(16)), count(e.Unknown, r.u64(24))
	case kindCall:
		c := Call{PID: pid, Correlation: r.u32(4), Thread: int32(r.u32(32)), Driver: r.u32(24) == 1}
		if c.StartNS, c.EndNS, ok = r.interval(&p.clock); ok {
			p.Calls++
			return to.Call(c)
		}
	default:
		w := p.work(pid, r)
		if w.StartNS, w.EndNS, ok = r.interval(&p.clock); ok {
			p.Work++
			return to.Work(w)
		}
	}
	if !ok {
		p.Bad++
	}
	return nil
}

// count adds what a library counted, which may be anything.
func count(earlier int64, n uint64) int64 { return int64(min(uint64(earlier)+min(n, 1<<62), 1<<62)) }

func (p *process) name(r record) bool {
	id, text, ok := r.name()
	if _, known := p.names[id]; !ok || known {
		return ok
	}
	if len(p.names) == mostNames || p.nameBytes+len(text) > mostNameBytes {
		return true // its kernels are counted as unnamed
	}
	p.names[id] = text
	p.nameBytes += len(text)
	return true
}

func (p *process) work(pid int32, r record) Work {
	w := Work{PID: pid, Correlation: r.u32(4)}
	switch r.kind() {
	case kindKernel:
		w.Kind, w.Node = Kernel, r.u64(32)
		w.Device, w.Context, w.Stream = r.u32(40), r.u32(44), r.u32(48)
		w.Grid, w.Block, w.Shared = r.three(56), r.three(68), r.u32(80)
		if w.Name = p.names[r.u64(24)]; w.Name == "" {
			p.Unnamed++
		}
	case kindCopy, kindSet:
		w.Kind, w.Bytes, w.Node = Copy, r.u64(24), r.u64(32)
		if r.kind() == kindSet {
			w.Kind = Set
		}
		w.Device, w.Context, w.Stream, w.Way = r.u32(40), r.u32(44), r.u32(48), r.u32(56)
	case kindWait:
		w.Kind, w.Way, w.Context, w.Stream = Wait, r.u32(24), r.u32(28), r.u32(32)
	}
	return w
}
