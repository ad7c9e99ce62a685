package site

// What hand-written and generated kernels do where they realign the stack. MKL:
//
//	mov %rsp, %rbp; sub %rax, %rsp; and $-4096, %rsp; mov %rbp, 0x78(%rsp)
//	… %rbp is used for other things …
//	mov 0x78(%rsp), %rsp
//
// oneDNN:
//
//	mov %rsp, %r15; sub $8, %rsp; and $-64, %rsp; mov %r15, (%rsp)
//	sub $0x180, %rsp; mov %rsp, %r15; … add $0x180, %r15 …
//	mov (%r15), %rsp
//
// In between the CFA is found through the memory slot with the old stack pointer.

// follow keeps track of that slot, and of the register that leads to it; n is the
// state before it with the pointers moved.
func (n *height) follow(before height, e *encoding, in *insn) {
	wide := e.wideMove() && !e.hasIdx && !e.noBase
	load, store := wide && e.opcode == 0x8b && e.mod != 3, wide && e.opcode == 0x89 && e.mod != 3
	switch {
	case load && e.reg == regSP && before.restores(e):
		n.sp, n.spKnown = before.slotSP, true
		*n = n.withoutSlot()
	case store && e.rm == regSP && !before.spKnown && e.reg == regBP && before.fpKnown:
		*n = n.withSlot(e.disp, before.fp)
	case store && e.rm == regSP && !before.spKnown && before.held.in == int8(e.reg) && e.reg != 0 && !before.held.toSlot:
		*n = n.withSlot(e.disp, before.held.at)
	case in.sp == moveAdd && before.slotted:
		n.slot -= in.spDelta
	case in.sp != moveNone:
		*n = n.withoutSlot()
	}
	n.held = n.holds(before, e, wide, in)
}

// wideMove: a REX prefix with W and no other, and mov, or add and sub of a constant.
func (e *encoding) wideMove() bool {
	return e.kind == 0 && !e.vex && e.rex&8 != 0 && !e.prefixed() &&
		(e.opcode == 0x89 || e.opcode == 0x8b || e.opcode == 0x81 || e.opcode == 0x83)
}

// prefixed reports whether the instruction has another prefix than REX.
func (e *encoding) prefixed() bool {
	return e.opsize || e.addr32 || e.lock || e.segment || e.thread || e.rep != 0
}

// onStack reports whether the memory operand is above the stack pointer.
func (e *encoding) onStack() bool {
	return e.modrm && e.mod != 3 && !e.hasIdx && !e.noBase && e.rm == regSP
}

// restores reports whether a load finds the old stack pointer.
func (s height) restores(e *encoding) bool {
	switch {
	case !s.slotted:
		return false
	case e.rm == regSP:
		return e.disp == s.slot
	}
	return s.held.in == int8(e.rm) && e.rm != 0 && s.held.toSlot && s.held.at+e.disp == 0
}

func (s height) withSlot(slot, sp int32) height {
	s.slotted, s.slot, s.slotSP = true, slot, sp
	return s
}

func (s height) withoutSlot() height {
	s.slotted, s.slot, s.slotSP = false, 0, 0
	if s.held.toSlot {
		s.held = held{}
	}
	return s
}

// holds is the register that has a stack pointer after an instruction.
func (s height) holds(before height, e *encoding, wide bool, in *insn) held {
	kept := s.held
	register := kept.in
	switch {
	case wide && e.mod == 3 && e.opcode == 0x89 && e.reg == regSP && e.rm != regSP && e.rm != regBP && e.rm != 0:
		if before.spKnown {
			return held{in: int8(e.rm), at: before.sp}
		}
		if before.slotted {
			return held{in: int8(e.rm), toSlot: true, at: -before.slot}
		}
	case register == 0:
		return kept
	case wide && e.mod == 3 && (e.opcode == 0x81 || e.opcode == 0x83) && int8(e.rm) == register && (e.reg&7 == 0 || e.reg&7 == 5):
		by := int32(e.imm)
		if e.reg&7 == 5 {
			by = -by
		}
		if !kept.toSlot {
			by = -by // counted downwards
		}
		kept.at += by
		return kept
	}
	if in.writes>>register&1 != 0 {
		return held{}
	}
	return kept
}

// preserved: a called function leaves the register as it was (System V ABI).
func preserved(register int8) bool {
	return register == regBX || register == regBP || register >= 12
}
