package unwinding

import (
	"encoding/binary"
	"slices"

	"github.com/ebpfprof/ebpfprof/bpf"
)

// memory is what the walk in user space was told of a process, for the walk from outside.
type memory struct {
	pieces  []piecedMemory
	faults  []uint64
	page    uint64
	stepped uint64
	pending []PendingReturn
}

type piecedMemory struct {
	address  uint64
	contents []byte
}

// say takes what walker.say has sent.
func (m *memory) say(letter byte, body []byte) {
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(body[at:]) }
	switch letter {
	case 'c':
		*m = memory{}
	case 'm':
		m.pieces = append(m.pieces, piecedMemory{word(0), slices.Clone(body[8:])})
	case 'x':
		m.faults = append(m.faults, word(0))
	case 'u':
		m.page, m.stepped = word(0), word(8)
		for at := 16; at+16 <= len(body); at += 16 {
			m.pending = append(m.pending, PendingReturn{word(at), word(at + 8)})
		}
	}
}

func (m *memory) read(address uint64, to []byte) bool {
	end := address + uint64(len(to))
	if slices.ContainsFunc(m.faults, func(f uint64) bool { return f >= address && f < end }) {
		return false
	}
	for _, p := range m.pieces {
		if address >= p.address && end <= p.address+uint64(len(p.contents)) {
			copy(to, p.contents[address-p.address:])
			return true
		}
	}
	return false
}

// compare holds the walk from outside against what the kernel's found: every tape of
// these tests is one of both.
func (w *walker) compare(start bpf.PythonWalkWalkStart, of *nativeStack) {
	w.t.Helper()
	if w.outside == nil || w.memory.stepped != 0 { // a thread that is single-stepped does not stand still
		return
	}
	got := RulesOf(w.outside, 1).Walk(w.machine, &Start{PythonWalkWalkStart: start, Pending: w.memory.pending, ProbePage: w.memory.page},
		w.memory.read, 128)
	if got.Outcome != Outcome(of.Outcome) || len(got.Frames) != int(of.Count) {
		w.t.Errorf("from outside %s after %d frames, in the kernel %s after %d", got.Outcome, len(got.Frames), Outcome(of.Outcome), of.Count)
		return
	}
	for i, f := range got.Frames {
		if k := &of.Frame[i]; f.Pc != k.PC || f.Cfa != k.CFA || f.Flags != k.Flags {
			w.t.Errorf("frame %d from outside %#x, CFA %#x, flags %d; in the kernel %#x, CFA %#x, flags %d", i, f.Pc, f.Cfa, f.Flags, k.PC, k.CFA,
				k.Flags)
		}
	}
}

// nativeStack is struct native_stack of bpf/stack.h.
type nativeStack struct {
	SP             uint64
	Count, Outcome uint32
	Frame          [512]struct {
		PC         uint64
		CFA, Flags uint32
	}
}

func (s *nativeStack) pcs() []uint64 {
	var pcs []uint64
	for _, f := range s.Frame[:s.Count] {
		pcs = append(pcs, f.PC)
	}
	return pcs
}
