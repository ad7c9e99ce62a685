package unwind

import "strings"

// DW_OP_* of DWARF 5, section 7.7.1, as far as compilers write them in frame
// descriptions.
const (
	opDeref      = 0x06
	opPlus       = 0x22
	opPlusUconst = 0x23
	opLit0       = 0x30
	opLit31      = 0x4f
	opBreg0      = 0x70
	opBreg31     = 0x8f
)

// signalExpression is the CFA of glibc's __restore_rt: *(rsp + 160), the stack
// pointer in the ucontext that the kernel pushed.
const signalExpression = "\x77\xa0\x01\x06"

// The CFA inside a procedure linkage table, whose entries of 16 bytes push one
// word some way in: rsp + 8 + ((rip & 15) >= n) * 8. The linker writes n as a
// literal: 11 for the plain table, others for those with endbr64 or bnd.
const (
	pltBefore = "\x77\x08\x80\x00\x3f\x1a"
	pltAfter  = "\x2a\x33\x24\x22"
)

// fromExpression recognises the expressions that rules have kinds for.
func (m *machine) fromExpression(expression string) Rule {
	if rest, ok := strings.CutPrefix(expression, pltBefore); ok && len(rest) == 1+len(pltAfter) &&
		rest[1:] == pltAfter && rest[0] >= opLit0 && rest[0] <= opLit31 && m.sp == 7 {
		return Rule{Kind: PLT, Aux: int32(rest[0] - opLit0)}
	}
	base, offset, rest, ok := m.baseOffset(expression)
	if !ok {
		return Rule{Kind: Expression}
	}
	if rest == "" {
		return Rule{Kind: Offset, Register: base, CFA: offset}
	}
	if rest[0] != opDeref {
		return Rule{Kind: Expression}
	}
	added, ok := addition(rest[1:])
	if !ok {
		return Rule{Kind: Expression}
	}
	return Rule{Kind: Deref, Register: base, Aux: offset, CFA: added}
}

// baseOffset takes DW_OP_breg of a register that rules know off an expression.
func (m *machine) baseOffset(expression string) (base Base, offset int32, rest string, ok bool) {
	if expression == "" || expression[0] < opBreg0 || expression[0] > opBreg31 {
		return 0, 0, "", false
	}
	base, ok = m.base(uint64(expression[0] - opBreg0))
	r := reader{data: []byte(expression), at: 1}
	value := r.sleb()
	if !ok || r.bad || !fits(value) {
		return 0, 0, "", false
	}
	return base, int32(value), expression[r.at:], true
}

// addition is the end of an expression that adds a constant, or nothing.
func addition(rest string) (int32, bool) {
	switch {
	case rest == "":
		return 0, true
	case rest[0] == opPlusUconst:
		r := reader{data: []byte(rest), at: 1}
		value := r.uleb()
		return int32(value), !r.bad && r.done() && value <= 1<<30
	case len(rest) == 2 && rest[0] >= opLit0 && rest[0] <= opLit31 && rest[1] == opPlus:
		return int32(rest[0] - opLit0), true
	}
	return 0, false
}
