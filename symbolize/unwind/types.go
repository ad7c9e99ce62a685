// Package unwind compiles .eh_frame, the description of every function's stack
// frame that compilers leave in a file, into tables that a BPF program can
// search: rows of 4 bytes that say from which address on which rule finds the
// caller, in leaves of 4 KiB.
//
// The package is no part of the public API: it may change with any version.
package unwind

import (
	"errors"
	"time"
	"unsafe"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// Errors of Compile.
var (
	// ErrNoFrames: the file has no .eh_frame, or nothing that can be read of it.
	ErrNoFrames = errors.New("no .eh_frame")
	// ErrTooManyRules: more distinct rules than a row can name.
	ErrTooManyRules = errors.New("more than 32,768 distinct unwind rules")
	// ErrTooSlow: it took longer than any real file's table.
	ErrTooSlow = errors.New("an unwind table that takes longer than 20 s to make")
	// ErrTooLarge: the described addresses are too many or too far apart for a table.
	ErrTooLarge = errors.New("an address range too large for an unwind table")
)

// Kind is how a frame's address, the CFA, is found: enum unwind_kind of
// bpf/unwind_maps.h.
type Kind uint8

// The kinds of rules.
const (
	None       Kind = iota // no description covers the address
	Offset                 // CFA = Register + CFA
	Deref                  // CFA = *(Register + Aux) + CFA
	PLT                    // CFA = sp + 8, 16 from the Aux-th of 16 bytes on
	Signal                 // the kernel's frame under a signal handler
	Register               // the frame address is in a register that is not followed
	Expression             // only an interpreter of DWARF could follow it
	Inferred               // as Offset, or with Aux as Deref, read from the instructions: the file says nothing
)

// Base is a register that a frame address can come from: enum unwind_register.
type Base uint8

// The registers, with their names on x86-64.
const (
	SP Base = iota
	FP
	R10
	R13
)

// ReturnAddress is where the return address is: enum unwind_ra.
type ReturnAddress uint8

// The places of a return address.
const (
	Saved ReturnAddress = iota // at CFA - 8; on arm64 at CFA + Aux
	Link                       // in the link register; on x86-64 in rdi, as vfork has it
	End                        // undefined: the outermost frame
)

// FramePointer is where the caller's frame pointer is: enum unwind_fp.
type FramePointer uint8

// The places of a frame pointer.
const (
	Same  FramePointer = iota
	AtCFA              // at CFA + FPOffset
	AtFP               // at the frame pointer + FPOffset
	Lost
)

// Rule finds a frame's caller: struct unwind_rule of bpf/unwind_maps.h.
type Rule struct {
	Kind          Kind
	Register      Base
	ReturnAddress ReturnAddress
	FramePointer  FramePointer
	CFA           int32
	FPOffset      int32
	Aux           int32
}

const ruleBytes = 16

const (
	// maxCompiling is how much of a CPU one file's table may take: PyTorch's largest
	// libraries take a second or two.
	maxCompiling = 20 * time.Second
	// maxInferred is how much code in one piece that no description covers is looked
	// at: PyTorch has 28 MB in all.
	maxInferred = 256 << 20
)

// maxRules is how many a row can tell apart from sequences.
const maxRules = oneRule

// The rule crosses into a BPF map as it lies in memory.
var _ [ruleBytes - unsafe.Sizeof(Rule{})]struct{}
var _ [unsafe.Sizeof(Rule{}) - ruleBytes]struct{}

// Infer reads rules from code that no description covers, in the order of their
// addresses; None where it does not understand it.
type Infer func(code []byte, address uint64) []InferredRule

// InferredRule holds from an address on.
type InferredRule struct {
	Address uint64
	Rule    Rule
}

// row begins at an address and ends where the next begins.
type row struct {
	address uint64
	rule    uint16
}

// pcShift is how many low bits of a code address are always zero.
func pcShift(machine elf.Machine) uint {
	if machine == elf.MachineARM64 {
		return 2
	}
	return 0
}
