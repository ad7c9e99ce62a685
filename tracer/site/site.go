// Package site chooses the instructions of a function on which user-space
// probes sit: where the kernel emulates the probed instruction instead of
// single-stepping it, and where a hit means exactly one entry or one normal
// return of the call.
//
// On x86-64 a probe on an emulated instruction costs about 0.55 µs and one on
// any other instruction about 20 µs in a virtual machine, because each
// single-step leaves the guest. A return probe on a C++ function that throws
// aborts the process, so the end of such a call is taken from exit sites:
// ordinary instructions that every normal return passes exactly once.
//
// The planners read machine code and nothing else; the caller supplies what
// only the object file knows (see [Function]). Every plan of exit sites is
// verified by a second algorithm before it is returned.
//
// The package is no part of the public API: it may change with any version.
package site

import (
	"errors"
	"fmt"
)

// Arch is the instruction set of a function.
type Arch uint8

const (
	AMD64 Arch = iota // x86-64
	ARM64             // AArch64, little endian
)

// String returns Go's name of the architecture.
func (a Arch) String() string {
	switch a {
	case AMD64:
		return "amd64"
	case ARM64:
		return "arm64"
	}
	return fmt.Sprintf("arch(%d)", uint8(a))
}

// Cost is what one hit of a probe costs, by how the kernel executes the
// instruction it replaced.
type Cost uint8

const (
	// CostNop5: a 5-byte nop at the function's entry, which Linux 6.18
	// rewrites to a call (about 0.25 µs).
	CostNop5 Cost = iota
	// CostEmulated: the trap handler emulates the instruction (about 0.55 µs).
	CostEmulated
	// CostStepped: the instruction runs out of line under a single-step (2 to
	// 3 times an emulated one on bare metal, 35 times in a virtual machine).
	CostStepped
)

// String returns the word the terminal and the dataset use.
func (c Cost) String() string {
	switch c {
	case CostNop5:
		return "nop5"
	case CostEmulated:
		return "emulated"
	case CostStepped:
		return "stepped"
	}
	return fmt.Sprintf("cost(%d)", uint8(c))
}

// Fragment is a run of machine code at a virtual address.
type Fragment struct {
	Address uint64
	Code    []byte
}

// Function is the machine code of one function and what its object file says
// about the addresses it branches to. All addresses are virtual addresses of
// the object file, before relocation.
type Function struct {
	Arch    Arch
	Address uint64 // virtual address of Code[0]
	Code    []byte // the whole function, at most the symbol's size

	// Cold holds the parts of the function that the compiler placed elsewhere
	// (gcc's NAME.cold symbols). Branches between the parts are followed.
	Cold []Fragment

	// FunctionStart reports whether a function (or a PLT stub) begins at addr:
	// a jump there is a tail call. May be nil: no address is.
	FunctionStart func(addr uint64) bool

	// Part returns the piece of code that holds addr, for libraries without
	// symbols of the cold parts: each has a frame description of its own in
	// .eh_frame. It is asked about jumps out of the known code to addresses that
	// are no FunctionStart; where it does not know either, the jump is
	// ErrLeavesFunction. May be nil.
	Part func(addr uint64) (Fragment, bool)

	// NoReturn reports whether a call or jump to addr never returns, such as
	// the PLT stub of __stack_chk_fail, abort or __cxa_throw. A name too many
	// hides a way out of the function, a name too few makes plans fail. May be
	// nil.
	NoReturn func(addr uint64) bool

	// Leaf reports whether a call to addr is known neither to throw nor to call
	// back, such as the PLT stub of a name for which LeafName is true. May be
	// nil.
	Leaf func(addr uint64) bool

	// NoThrow reports whether a call to addr is known not to throw, though it may
	// call back: a destructor. May be nil.
	NoThrow func(addr uint64) bool

	// Read fills b from read-only memory at addr and reports whether it could.
	// With it the targets of jump tables are known; without it a function that
	// has one is ErrIndirectJump for exits. May be nil.
	Read func(addr uint64, b []byte) bool
}

func (f *Function) noReturn(addr uint64) bool { return f.NoReturn != nil && f.NoReturn(addr) }
func (f *Function) leaf(addr uint64) bool     { return f.Leaf != nil && f.Leaf(addr) }
func (f *Function) quiet(addr uint64) bool {
	return f.leaf(addr) || f.NoThrow != nil && f.NoThrow(addr)
}
func (f *Function) starts(addr uint64) bool { return f.FunctionStart != nil && f.FunctionStart(addr) }

// Need says what an entry site must still have in place.
type Need struct {
	// Args has bit n set where integer argument register n (rdi, rsi, rdx, rcx,
	// r8, r9; x0 to x7) must be intact.
	Args uint8
	// Stack: stack arguments are read, so none may have been overwritten.
	Stack bool
	// Memory: what pointers lead to is read, so nothing may have been stored but
	// into the function's own frame.
	Memory bool
	// Return: a return probe will sit here. The kernel replaces the word at the
	// stack pointer (x86-64) or the link register (arm64) at the probed
	// instruction, so the stack pointer must not have moved, and on arm64 the
	// link register must be unsaved and unsigned.
	Return bool
	// LongNops: the kernel handles nops of more than two bytes without a
	// single-step (Linux 6.18), so they count as cheap.
	LongNops bool
	// Before, if not 0, is the offset that the site must lie before: that of the
	// instruction at which the call's results are read.
	Before uint64
}

// Entry is a site that every call of the function passes exactly once.
type Entry struct {
	Offset uint64 // from the function's address
	// Displacement is how many bytes the stack pointer is below its value at
	// the function's first instruction: entrySP = SP + Displacement.
	Displacement int32
	Cost         Cost
	Reason       string // one clause for a person: "push %rbp after endbr64"
}

// Exit is one site of a set that every normal return passes exactly once.
type Exit struct {
	Offset uint64 // from the function's address
	// Displacement is as in Entry; zero where DisplacementKnown is false (the
	// function allocates dynamically or realigns its stack).
	Displacement      int32
	DisplacementKnown bool
	Cost              Cost
	// TailCall: the site is, or is followed by, a jump to another function,
	// which may do the call's work after the site.
	TailCall bool
	// CallsAfter: functions that may throw or call back are still called
	// directly between this site and the return (destructors).
	CallsAfter bool
	Reason     string // one clause for a person: "jne 14 bytes before ret"
}

var (
	// ErrUndecodable: an instruction of the function is unknown or truncated,
	// or a branch goes into the middle of one.
	ErrUndecodable = errors.New("code cannot be decoded")
	// ErrEntryInLoop: a jump leads back to the first instruction, so no site
	// counts calls.
	ErrEntryInLoop = errors.New("the entry is the head of a loop")
	// ErrNoEntrySite: the needs cannot be met, and the first instruction is one
	// the kernel refuses to probe.
	ErrNoEntrySite = errors.New("no instruction can hold an entry probe")
	// ErrNoExitSite: no set of cheap instructions is passed exactly once by
	// every normal return.
	ErrNoExitSite = errors.New("no exit site")
	// ErrNeverReturns: no path leads to a normal return.
	ErrNeverReturns = errors.New("the function never returns normally")
	// ErrIndirectJump: a jump has unknown targets, so nothing can be proven.
	ErrIndirectJump = errors.New("indirect jump with unknown targets")
	// ErrLeavesFunction: a jump leads out of the known code to an address that
	// is not the start of a function, and may come back unseen.
	ErrLeavesFunction = errors.New("jump out of the known code")
	// ErrUnproven: the independent checker did not confirm the plan.
	ErrTailCall = errors.New("it ends in a jump to another function, which returns the value")
	// ErrUnproven: the checker does not confirm the chosen sites.
	ErrUnproven = errors.New("exit plan not confirmed")
)
