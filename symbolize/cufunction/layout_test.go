package cufunction

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// process is a made-up memory: what is not in it cannot be read.
type process map[uint64][]byte

func (p process) memory(address uint64, b []byte) error {
	for start, contents := range p {
		if address >= start && address+uint64(len(b)) <= start+uint64(len(contents)) {
			copy(b, contents[address-start:])
			return nil
		}
	}
	return errors.New("not mapped")
}

// kernel puts a structure with names at some offsets into the process.
func (p process) kernel(handle uint64, names map[uint64]string) {
	b := make([]byte, scanned)
	for offset, name := range names {
		at := 0x500000 + handle + 0x1000*offset
		p[at] = append([]byte(name), make([]byte, 300)...)
		binary.LittleEndian.PutUint64(b[offset:], at)
	}
	p[handle] = b
}

const build = "0123"

func (p process) is(t *testing.T, l *Layouts, handle uint64, want string, reason Reason) {
	t.Helper()
	name, got := l.Name(build, handle, p.memory)
	if name != want || got != reason {
		t.Errorf("handle %#x: %q (%v), want %q (%v)", handle, name, got, want, reason)
	}
}

func TestTheUsualPlaceIsBelievedUntilMoreIsKnown(t *testing.T) {
	p, l := process{}, NewLayouts()
	p.kernel(0x10000, map[uint64]string{8: "_Z4gemmPfS_", 64: "sm_90"})
	p.is(t, l, 0x10000, "_Z4gemmPfS_", Named)
}

func TestAnotherPlaceIsFoundByItselfWhereItIsTheOnlyOne(t *testing.T) {
	p, l := process{}, NewLayouts()
	p.kernel(0x10000, map[uint64]string{0x88: "triton_poi_fused_add_0"})
	p.is(t, l, 0x10000, "triton_poi_fused_add_0", Named)
	p.kernel(0x20000, map[uint64]string{0x88: "gemm", 0x90: "other"})
	p.is(t, l, 0x20000, "", Ambiguous)
}

func TestKnownHandlesTellWhereTheNameIs(t *testing.T) {
	p, l := process{}, NewLayouts()
	for i := range uint64(3) {
		p.kernel(0x10000*(i+1), map[uint64]string{8: "sm_90", 0x88: fmt.Sprintf("_Z%dkernelv", i)})
	}
	p.is(t, l, 0x10000, "sm_90", Named) // the usual place, and wrong: hence learning
	l.Learn(build, 0x10000, "_Z0kernelv", p.memory)
	for i := range uint64(3) {
		p.is(t, l, 0x10000*(i+1), fmt.Sprintf("_Z%dkernelv", i), Named)
	}
	// What holds for this build says nothing of another.
	if name, _ := l.Name("4567", 0x20000, p.memory); name != "sm_90" {
		t.Errorf("another build: %q", name)
	}
}

func TestTwoKindsOfStructureAreTwoPlaces(t *testing.T) {
	p, l := process{}, NewLayouts()
	p.kernel(0x10000, map[uint64]string{8: "function"})
	p.kernel(0x20000, map[uint64]string{0x40: "kernel"})
	l.Learn(build, 0x10000, "function", p.memory)
	l.Learn(build, 0x20000, "kernel", p.memory)
	p.kernel(0x30000, map[uint64]string{8: "f"})
	p.kernel(0x40000, map[uint64]string{0x40: "k"})
	p.kernel(0x50000, map[uint64]string{8: "f", 0x40: "k"})
	p.is(t, l, 0x30000, "f", Named)
	p.is(t, l, 0x40000, "k", Named)
	p.is(t, l, 0x50000, "", Ambiguous)
}

func TestALayoutThatDoesNotHoldIsNotBelieved(t *testing.T) {
	p, l := process{}, NewLayouts()
	p.kernel(0x10000, map[uint64]string{8: "known"})
	l.Learn(build, 0x10000, "known", p.memory)
	p.kernel(0x20000, map[uint64]string{8: "not_this"})
	l.Learn(build, 0x20000, "this", p.memory)
	p.is(t, l, 0x10000, "known", Named) // one may have been unloaded meanwhile
	l.Learn(build, 0x20000, "this", p.memory)
	l.Learn(build, 0x20000, "this", p.memory)
	p.is(t, l, 0x10000, "", Contradicted)
}

func TestGarbageHasNoName(t *testing.T) {
	p, l := process{}, NewLayouts()
	p.kernel(0x10000, map[uint64]string{8: "torn\xff\x01name"})
	p.kernel(0x20000, map[uint64]string{8: "2digits"})
	p.kernel(0x30000, map[uint64]string{8: ".text.section"})
	p.kernel(0x40000, nil)
	p.kernel(0x50000, map[uint64]string{8: strings.Repeat("x", maxName+1)})
	p[0x60000] = make([]byte, 12) // ends inside the pointer
	for handle, reason := range map[uint64]Reason{
		0: Null, 1: Null, 4095: Null, 1 << 63: Null, ^uint64(0): Null, 0x7fff0000: Unreadable, 0x60000: Unreadable,
		0x10000: NoName, 0x20000: NoName, 0x30000: NoName, 0x40000: NoName, 0x50000: NoName,
	} {
		p.is(t, l, handle, "", reason)
		l.Learn("other", handle, "name", p.memory)
	}
}

func FuzzName(f *testing.F) {
	f.Add(uint64(0x10000), []byte("\x08\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00kernel\x00"), "kernel")
	f.Fuzz(func(t *testing.T, handle uint64, contents []byte, known string) {
		p, l := process{0x10000: contents}, NewLayouts()
		l.Learn(build, 0x10000, known, p.memory)
		if name, reason := l.Name(build, handle, p.memory); (reason == Named) != isName([]byte(name)) {
			t.Errorf("%q, %v", name, reason)
		}
	})
}
