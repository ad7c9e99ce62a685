package site

import (
	"math/rand/v2"
	"testing"

	"golang.org/x/arch/x86/x86asm"
)

func fuzzSeeds(f *testing.F) {
	for _, s := range []string{
		"48 83 ec 18 ff d0 64 48 2b 04 25 28 00 00 00 75 05 48 83 c4 18 c3 e8 e5 80 00 00",
		"74 05 ff d0 74 06 c3 ff d1 74 01 c3 c3",
		"f3 0f 1e fa 55 48 89 e5 41 57 e8 f1 7f 00 00 85 c0 75 f4 c9 c3",
		"81 3d 00 10 00 00 00 ba 1c 32 74 06 ff 25 00 10 00 00 c3",
		"62 f1 7c 48 28 05 00 00 00 00 c5 f8 77 c4 e2 f9 f7 c0 c3",
	} {
		f.Add(code(f, s))
	}
}

// FuzzLength: an instruction's length is within its bytes, does not depend on
// what follows, and is what x86asm finds where it knows the instruction.
func FuzzLength(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		var in, again insn
		if !decodeAMD64Start(b, &in) {
			return
		}
		n := int(in.size)
		if n < 1 || n > 15 || n > len(b) {
			t.Fatalf("% x: length %d", b, n)
		}
		if !decodeAMD64Start(b[:n], &again) || again != in {
			t.Fatalf("% x: %+v alone, %+v with more behind it", b[:n], again, in)
		}
		if decodeAMD64Start(b[:n-1], &again) {
			t.Fatalf("% x: decoded without its last byte", b[:n])
		}
		if x, err := x86asm.Decode(b, 64); err == nil && x.Op != 0 && !odd(b[:n]) && x.Len != n {
			t.Fatalf("% x: length %d, x86asm says %d (%v)", b, n, x.Len, x)
		}
	})
}

func decodeAMD64Start(b []byte, in *insn) bool {
	return len(b) > 0 && decodeAMD64(b, 0, testOrigin, in)
}

// odd reports whether the instruction has prefixes that compilers do not write
// and x86asm reads in its own way.
func odd(b []byte) bool {
	seen := 0
	for len(b) > 0 && isPrefix(b[0]) {
		seen++
		b = b[1:]
	}
	if len(b) > 1 && b[0] == 0x0f && b[1]&0xfc == 0x20 {
		return true // moves of control registers, whose mod bits processors ignore
	}
	if len(b) == 3 && b[0] == 0xc5 && b[1]&0xf8 != 0xf8 && b[2] == 0x77 {
		return true // vzeroupper that names or extends a register: x86asm does not know it, and takes what follows for one
	}
	return seen > 1 || seen == 1 && len(b) > 0 && (b[0]&0xfe == 0xe8 || b[0]&0xf0 == 0xa0)
}

func fuzzFunction(arch Arch, b []byte) Function {
	return Function{Arch: arch, Address: testOrigin, Code: b,
		FunctionStart: func(a uint64) bool { return a&1 == 0 },
		NoReturn:      func(a uint64) bool { return a&7 == 1 },
		Leaf:          func(a uint64) bool { return a&3 == 1 }}
}

func FuzzPlanEntryAMD64(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) { entryHolds(t, fuzzFunction(AMD64, b), b) })
}

func FuzzPlanExitsAMD64(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) { exitsHold(t, fuzzFunction(AMD64, b), b) })
}

func FuzzPlanARM64(f *testing.F) {
	for _, s := range []string{
		"fd7bbfa9 00003fd6 fd7bc1a8 c0035fd6",
		"3f2303d5 fd7bbea9 00000090 40000034 c0035fd6 bf2303d5 c0035fd6",
		"5f2403d5 40000034 c0035fd6 fdffff17",
	} {
		f.Add(code(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		entryHolds(t, fuzzFunction(ARM64, b), b)
		exitsHold(t, fuzzFunction(ARM64, b), b)
	})
}

// walker runs through a function at random, with its own reading of where each
// instruction leads.
type walker struct {
	f     Function
	rng   *rand.Rand
	hits  map[uint64]int
	sites map[uint64]bool
}

// run walks from the entry; it reports whether the walk ended in a normal
// return, and false where it was cut off, trapped, or left by an exception.
func (w *walker) run(t *testing.T, steps int) bool {
	w.hits = map[uint64]int{}
	inside := func(a uint64) bool { return a-w.f.Address < uint64(len(w.f.Code)) }
	for off := uint64(0); steps > 0; steps-- {
		if off >= uint64(len(w.f.Code)) {
			return false
		}
		var in insn
		if !decode(w.f.Arch, w.f.Code, int(off), w.f.Address, &in) {
			return false
		}
		if w.sites[off] {
			w.hits[off]++
		}
		next := off + uint64(in.size)
		switch in.flow {
		case flowReturn:
			return true
		case flowStop:
			return false
		case flowJumpIndirect:
			return true // accepted only as a tail call
		case flowCall:
			if w.f.NoReturn(in.target) {
				return false
			}
		case flowJump, flowCond:
			if in.flow == flowCond && w.rng.IntN(2) == 0 {
				break
			}
			if !inside(in.target) {
				return !w.f.NoReturn(in.target)
			}
			next = in.target - w.f.Address
		}
		off = next
	}
	return false
}

func entryHolds(t *testing.T, f Function, b []byte) {
	for _, n := range []Need{{}, {Args: 0x3f}, {Stack: true, Return: true, LongNops: true}} {
		e, err := PlanEntry(f, n)
		if err != nil {
			continue
		}
		var in insn
		off := uint64(0)
		for off < e.Offset {
			if !decode(f.Arch, b, int(off), f.Address, &in) || in.flow != flowNext {
				t.Fatalf("% x: site %d is not on the straight line from the entry", b, e.Offset)
			}
			off += uint64(in.size)
		}
		if off != e.Offset {
			t.Fatalf("% x: site %d is not on an instruction", b, e.Offset)
		}
		if n.Return && e.Displacement != 0 {
			t.Fatalf("% x: return probe with the stack pointer moved by %d", b, e.Displacement)
		}
		w := walker{f: f, rng: rand.New(rand.NewPCG(1, 2)), sites: map[uint64]bool{e.Offset: true}}
		for range 4 {
			if w.run(t, 200); w.hits[e.Offset] > 1 {
				t.Fatalf("% x: site %d passed %d times", b, e.Offset, w.hits[e.Offset])
			}
		}
	}
}

func exitsHold(t *testing.T, f Function, b []byte) {
	for _, stepped := range []bool{false, true} {
		exits, err := PlanExits(f, stepped)
		if err != nil {
			continue
		}
		w := walker{f: f, rng: rand.New(rand.NewPCG(3, 4)), sites: map[uint64]bool{}}
		for _, e := range exits {
			w.sites[e.Offset] = true
			if e.Cost == CostStepped && !stepped {
				t.Fatalf("% x: a stepped site was not asked for: %+v", b, e)
			}
		}
		for range 8 {
			if !w.run(t, 300) {
				continue
			}
			sum := 0
			for _, n := range w.hits {
				sum += n
			}
			if sum != 1 {
				t.Fatalf("% x: a return passed %d sites of %+v", b, sum, exits)
			}
		}
	}
}
