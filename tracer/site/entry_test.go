package site

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

// code reads hexadecimal machine code; everything after # on a line is a
// comment.
func code(tb testing.TB, text string) []byte {
	tb.Helper()
	var digits strings.Builder
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

const (
	argDI = 1 << iota
	argSI
)

func TestEntrySites(t *testing.T) {
	for _, c := range []struct {
		claim  string
		arch   Arch
		code   string
		need   Need
		offset uint64
		down   int32
		cost   Cost
		reason string
		err    error
	}{
		{claim: "a push is probed at the entry", code: "55 c3",
			need: Need{Args: 0x3f, Stack: true, Return: true}, cost: CostEmulated, reason: "push %rbp at the entry"},
		{claim: "a push of a high register is cheap", code: "41 57 c3",
			cost: CostEmulated, reason: "push %r15 at the entry"},
		{claim: "the push after endbr64 keeps the return address in place", code: "f3 0f 1e fa 55 c3",
			need: Need{Args: 0x3f, Return: true}, offset: 4, cost: CostEmulated, reason: "push %rbp after endbr64"},
		{claim: "libcuda's thunk is probed at its conditional jump", code: `
			81 3d 00 10 00 00 00 ba 1c 32 # cmpl $0x321cba00, flag(%rip)
			74 06                         # je
			ff 25 00 10 00 00             # jmp *slot(%rip)
			c3`,
			need: Need{Args: 0x3f, Stack: true, Return: true}, offset: 10, cost: CostEmulated, reason: "je after one instruction"},
		{claim: "an overwritten argument stops the search", code: "48 89 f7 55 c3", // mov %rsi,%rdi
			need: Need{Args: argDI}, cost: CostStepped},
		{claim: "an overwritten argument nobody reads does not", code: "48 89 f7 55 c3",
			need: Need{Args: argSI}, offset: 3, cost: CostEmulated},
		{claim: "a write of part of an argument stops the search", code: "40 b7 01 55 c3", // mov $1,%dil
			need: Need{Args: argDI}, cost: CostStepped},
		{claim: "a 32-bit write of an argument stops the search", code: "31 ff 55 c3", // xor %edi,%edi
			need: Need{Args: argDI}, cost: CostStepped},
		{claim: "cpuid overwrites rdx and rcx", code: "31 c0 0f a2 55 c3",
			need: Need{Args: 1 << 2}, cost: CostStepped},
		{claim: "a one-operand multiplication overwrites rdx", code: "48 f7 e6 55 c3", // mul %rsi
			need: Need{Args: 1 << 2}, cost: CostStepped},
		{claim: "rep movs overwrites its registers", code: "f3 48 a5 55 c3",
			need: Need{Args: 1 << 3}, cost: CostStepped},
		{claim: "xchg overwrites both operands", code: "48 87 f7 55 c3", // xchg %rsi,%rdi
			need: Need{Args: argSI}, cost: CostStepped},
		{claim: "an unknown instruction overwrites everything", code: "31 c0 0f 01 d0 55 c3", // xgetbv
			need: Need{Args: argDI}, cost: CostStepped},
		{claim: "the displacement counts what was pushed", code: "48 83 ec 18 55 c3", // sub $24,%rsp
			offset: 4, down: 24, cost: CostEmulated},
		{claim: "a return probe wants the stack pointer unmoved", code: "48 83 ec 18 55 c3",
			need: Need{Return: true}, cost: CostStepped},
		{claim: "a realigned stack pointer stops the search", code: "48 83 e4 e0 55 c3", // and $-32,%rsp
			cost: CostStepped},
		{claim: "a store into the stack arguments stops the search", code: "48 89 7c 24 10 55 c3", // mov %rdi,16(%rsp)
			need: Need{Stack: true}, cost: CostStepped},
		{claim: "a store below the entry stack pointer does not", code: "48 83 ec 18 48 89 7c 24 10 55 c3",
			need: Need{Stack: true}, offset: 9, down: 24, cost: CostEmulated},
		{claim: "a store through a pointer may hit the stack arguments", code: "48 89 37 55 c3", // mov %rsi,(%rdi)
			need: Need{Stack: true}, cost: CostStepped},
		{claim: "a store through a pointer changes memory that is captured", code: "48 89 37 55 c3",
			need: Need{Memory: true}, cost: CostStepped},
		{claim: "so may a store at a fixed address", code: "c7 05 00 10 00 00 01 00 00 00 55 c3", // movl $1,flag(%rip)
			need: Need{Memory: true}, cost: CostStepped},
		{claim: "which stack arguments do not mind", code: "c7 05 00 10 00 00 01 00 00 00 55 c3",
			need: Need{Stack: true}, offset: 10, cost: CostEmulated},
		{claim: "a store into the function's own frame changes nothing of it", code: "48 83 ec 18 48 89 7c 24 10 55 c3",
			need: Need{Memory: true}, offset: 9, down: 24, cost: CostEmulated},
		{claim: "str xzr,[x0]; ret is probed before the store where it is captured", arch: ARM64, code: "1f 00 00 f9 c0 03 5f d6",
			need: Need{Memory: true, Args: 1}, cost: CostStepped},
		{claim: "and at the ret where it is not", arch: ARM64, code: "1f 00 00 f9 c0 03 5f d6",
			need: Need{Args: 1}, offset: 4, cost: CostEmulated},
		{claim: "mrs x1, tpidr_el0 is stepped where no cheap instruction follows", arch: ARM64, code: "41 d0 3b d5 20 00 80 52 1f 00 00 f9",
			need: Need{Args: 3, Return: true}, cost: CostStepped},
		{claim: "mrs x1, daif is refused", arch: ARM64, code: "21 42 3b d5 20 00 80 52 1f 00 00 f9",
			need: Need{Args: 3, Return: true}, err: ErrNoEntrySite},
		{claim: "mrs x1, midr_el1 is refused", arch: ARM64, code: "01 00 38 d5 20 00 80 52 1f 00 00 f9",
			need: Need{Args: 3, Return: true}, err: ErrNoEntrySite},
		{claim: "a direct call can be the site", code: "31 c0 e8 00 10 00 00 c3",
			offset: 2, cost: CostEmulated, reason: "call after one instruction"},
		{claim: "nothing after a refused call is the site", code: "66 66 48 e8 00 10 00 00 55 c3",
			err: ErrNoEntrySite},
		{claim: "a 2-byte nop is cheap on every kernel", code: "66 90 75 00 55 c3",
			cost: CostEmulated, reason: "nop at the entry"},
		{claim: "a jump back to the entry counts no calls", code: "55 5d 75 fc c3",
			err: ErrEntryInLoop},
		{claim: "a site that a loop passes again is refused", code: "31 c0 55 5d 75 fc c3",
			cost: CostStepped},
		{claim: "a site before a loop is not", code: "31 c0 55 5d ff c7 75 fc c3",
			offset: 2, cost: CostEmulated},
		{claim: "a jump from a cold part counts as a loop", code: "31 c0 55 c3",
			cost: CostEmulated, offset: 2},
		{claim: "a 5-byte nop at the entry is the cheapest site", code: "0f 1f 44 00 00 55 c3",
			need: Need{LongNops: true}, cost: CostNop5},
		{claim: "a 5-byte nop after endbr64 is too", code: "f3 0f 1e fa 0f 1f 44 00 00 55 c3",
			need: Need{LongNops: true}, offset: 4, cost: CostNop5},
		{claim: "kernels before 6.18 step it", code: "0f 1f 44 00 00 55 c3",
			offset: 5, cost: CostEmulated},
		{claim: "a 5-byte nop elsewhere would write below the stack pointer", code: "31 c0 0f 1f 44 00 00 c3",
			need: Need{LongNops: true}, cost: CostStepped},
		{claim: "xchg %r8,%rax, which the kernel takes for a nop, is never probed", code: "49 90 55 c3",
			offset: 2, cost: CostEmulated},
		{claim: "a locked instruction is never probed", code: "f0 ff 07 c3",
			err: ErrNoEntrySite},
		{claim: "a branch hint makes the kernel refuse the jump, and nothing after it is passed by all calls", code: "31 c0 3e 75 00 55 c3",
			cost: CostStepped},
		{claim: "int3 is never probed", code: "cc", err: ErrNoEntrySite},
		{claim: "an unknown instruction is an error", code: "55 06", err: ErrUndecodable},
		{claim: "a truncated instruction is an error", code: "55 48 8b", err: ErrUndecodable},
		{claim: "no code is an error", code: "", err: ErrUndecodable},

		{claim: "arm64: adrp after the frame is cheap", arch: ARM64, code: `
			fd7bbea9  # stp x29,x30,[sp,#-32]!
			00000090  # adrp x0
			c0035fd6`,
			need: Need{Args: 2}, offset: 4, down: 32, cost: CostEmulated, reason: "adr after one instruction"},
		{claim: "arm64: a return probe wants the link register unsaved", arch: ARM64, code: `
			fd7bbea9
			00000090
			c0035fd6`,
			need: Need{Return: true}, cost: CostStepped},
		{claim: "arm64: a return probe wants the link register unsigned", arch: ARM64, code: `
			3f2303d5  # paciasp
			a0000034  # cbz w0
			c0035fd6
			c0035fd6
			c0035fd6
			c0035fd6
			c0035fd6`,
			need: Need{Return: true}, cost: CostStepped},
		{claim: "arm64: a branch after bti keeps everything in place", arch: ARM64, code: `
			5f2403d5  # bti c
			40000034  # cbz w0,+8
			c0035fd6
			c0035fd6`,
			need: Need{Args: 0xff, Return: true, Stack: true}, offset: 4, cost: CostEmulated, reason: "conditional branch after bti"},
		{claim: "arm64: alloca moves the stack pointer by an unknown amount", arch: ARM64, code: `
			ff6320cb  # sub sp,sp,x0
			40000034  # cbz w0
			c0035fd6
			c0035fd6`,
			cost: CostStepped},
		{claim: "arm64: subs with the zero register does not", arch: ARM64, code: `
			1f6020eb  # cmp x0,x0,uxtx
			40000034  # cbz w0
			c0035fd6
			c0035fd6`,
			offset: 4, cost: CostEmulated, reason: "conditional branch after one instruction"},
		{claim: "arm64: an overwritten argument stops the search", arch: ARM64, code: `
			e00301aa  # mov x0,x1
			40000034  # cbz w0
			c0035fd6
			c0035fd6`,
			need: Need{Args: 1}, cost: CostStepped},
	} {
		t.Run(c.claim, func(t *testing.T) {
			e, err := PlanEntry(Function{Arch: c.arch, Address: 0x1000, Code: code(t, c.code)}, c.need)
			if !errors.Is(err, c.err) || (err != nil) != (c.err != nil) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if err != nil {
				return
			}
			if e.Offset != c.offset || e.Displacement != c.down || e.Cost != c.cost {
				t.Errorf("%+v, want offset %d, displacement %d, %v", e, c.offset, c.down, c.cost)
			}
			if c.reason != "" && e.Reason != c.reason {
				t.Errorf("reason %q, want %q", e.Reason, c.reason)
			}
		})
	}
}

func TestEntryLoopThroughColdPartIsSeen(t *testing.T) {
	f := Function{Address: 0x1000, Code: code(t, "31 c0 55 c3"),
		Cold: []Fragment{{0x2000, code(t, "e9 fd ef ff ff")}}} // jmp 0x1002
	e, err := PlanEntry(f, Need{})
	if err != nil || e.Cost != CostStepped || e.Offset != 0 {
		t.Errorf("%+v, %v; want the first instruction, stepped", e, err)
	}
}
