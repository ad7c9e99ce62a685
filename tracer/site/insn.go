package site

import "fmt"

// flow is how control leaves an instruction.
type flow uint8

const (
	flowNext         flow = iota // to the next instruction only
	flowJump                     // direct unconditional jump
	flowCond                     // direct conditional jump
	flowCall                     // direct call
	flowCallIndirect             // call through a register or memory
	flowJumpIndirect             // jump through a register or memory
	flowReturn                   // return to the caller
	flowStop                     // ends the process or traps: ud2, hlt, int3, brk
)

// grade is how the kernel treats a probe on an instruction.
type grade uint8

const (
	gradeRefused  grade = iota // registration fails, or we would not dare
	gradeStepped               // executed out of line
	gradeLongNop               // a nop of more than two bytes: emulated from 6.18
	gradeNop5                  // 0f 1f 44 00 00: optimised from 6.18, writes below rsp
	gradeEmulated              // emulated in the trap handler
)

// move is an instruction's effect on the stack or frame pointer.
type move uint8

const (
	moveNone    move = iota
	moveAdd          // += delta
	moveFromSP       // = stack pointer + delta
	moveFromFP       // = frame pointer + delta
	moveUnknown      // anything else
)

// store is where an instruction may write memory, as far as stack arguments
// are concerned.
type store uint8

const (
	storeNone  store = iota
	storeSP          // at stack pointer + storeDisp
	storeFP          // at frame pointer + storeDisp
	storeFixed       // at a fixed address
	storeOther       // anywhere
)

// jumpForm is what an indirect jump jumps through.
type jumpForm uint8

const (
	jumpOpaque   jumpForm = iota
	jumpRegister          // through register reg
	jumpSlot              // through memory without an index: a function pointer
)

// loadForm is what an instruction puts into register reg, as far as the target
// of an indirect jump is concerned.
type loadForm uint8

const (
	loadNone  loadForm = iota
	loadSlot           // a word from memory without an index
	loadTable          // a sign-extended 32-bit word at base + 4*index
	loadAddr           // the fixed address in target
	loadAdd            // reg += base
)

// insn is one decoded instruction of either architecture.
type insn struct {
	target    uint64 // virtual address a direct branch goes to, or loadAddr's
	off       uint32 // from the fragment's first byte
	writes    uint32 // bit n: general register n may be written
	spDelta   int32
	fpDelta   int32
	storeDisp int32
	to        int32 // after program.resolve: index of the branch's target, or -1
	size      uint8
	flow      flow
	grade     grade
	sp, fp    move
	store     store
	jump      jumpForm
	load      loadForm
	reg       uint8 // see jumpForm and loadForm
	base      uint8 // see loadForm
	nop       bool
	linkUse   bool // arm64: reads, signs or writes the link register
	never     bool // after program.resolve: a call that does not return
	throws    bool // after program.resolve: a call that may throw or call back
}

const writesAll = ^uint32(0)

// goesOn reports whether the instruction's successor in memory may follow it.
func (in *insn) goesOn() bool {
	switch in.flow {
	case flowNext, flowCond, flowCall, flowCallIndirect:
		return true
	}
	return false
}

// decode reads the instruction at code[off:]; the fragment starts at addr.
func decode(arch Arch, code []byte, off int, addr uint64, in *insn) bool {
	if arch == ARM64 {
		return decodeARM64(code, off, addr, in)
	}
	return decodeAMD64(code, off, addr, in)
}

// state is where the stack and frame pointers are, relative to the stack
// pointer at the function's first instruction, which is sp or fp plus the
// displacement.
type state struct {
	sp, fp           int32
	spKnown, fpKnown bool
}

// step is the state after the instruction.
func (s state) step(in *insn) state {
	n := s
	switch in.sp {
	case moveAdd:
		n.sp = s.sp - in.spDelta
	case moveFromFP:
		n.sp, n.spKnown = s.fp-in.spDelta, s.fpKnown
	case moveUnknown:
		n.sp, n.spKnown = 0, false
	}
	switch in.fp {
	case moveAdd:
		n.fp = s.fp - in.fpDelta
	case moveFromSP:
		n.fp, n.fpKnown = s.sp-in.fpDelta, s.spKnown
	case moveUnknown:
		n.fp, n.fpKnown = 0, false
	}
	if !n.spKnown {
		n.sp = 0
	}
	if !n.fpKnown {
		n.fp = 0
	}
	return n
}

// meet is what holds whichever of two paths was taken.
func (s state) meet(o state) state {
	if !s.spKnown || !o.spKnown || s.sp != o.sp {
		s.sp, s.spKnown = 0, false
	}
	if !s.fpKnown || !o.fpKnown || s.fp != o.fp {
		s.fp, s.fpKnown = 0, false
	}
	return s
}

// decodeBranches is decode for a caller that only asks where control goes.
func decodeBranches(arch Arch, code []byte, off int, addr uint64, in *insn) bool {
	if arch == ARM64 {
		return decodeARM64(code, off, addr, in)
	}
	return branchAMD64(code, off, addr, in)
}

// decodeAll decodes a fragment from its first byte to its last; from offset
// full on only the branches.
func decodeAll(arch Arch, fr Fragment, ins []insn, full int) ([]insn, error) {
	for off := 0; off < len(fr.Code); {
		ins = append(ins, insn{})
		in := &ins[len(ins)-1]
		read := decode
		if off >= full {
			read = decodeBranches
		}
		if !read(arch, fr.Code, off, fr.Address, in) {
			return ins, fmt.Errorf("%w at %#x", ErrUndecodable, fr.Address+uint64(off))
		}
		off += int(in.size)
	}
	return ins, nil
}
