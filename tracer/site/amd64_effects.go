package site

// decodeAMD64 decodes the instruction at code[off:] and what it does to
// control flow, the stack pointer, the argument registers and memory.
func decodeAMD64(code []byte, off int, addr uint64, in *insn) bool {
	var e encoding
	if !parseAMD64(code[off:], &e) {
		return false
	}
	next := addr + uint64(off) + uint64(e.size)
	*in = insn{off: uint32(off), size: uint8(e.size)}
	in.flow = flowAMD64(&e)
	switch in.flow {
	case flowJump, flowCond, flowCall:
		in.target = next + uint64(e.imm)
	case flowJumpIndirect:
		switch {
		case e.mod == 3:
			in.jump, in.reg = jumpRegister, e.rm
		case !e.hasIdx && (!e.noBase || e.rip):
			in.jump = jumpSlot
		}
	}
	in.writes = writesAMD64(&e)
	stackAMD64(&e, in)
	storeAMD64(&e, in)
	loadAMD64(&e, in, next)
	gradeAMD64(&e, code[off:off+e.size], in)
	return true
}

// branchAMD64 is decodeAMD64 without the effects on registers and memory.
func branchAMD64(code []byte, off int, addr uint64, in *insn) bool {
	var e encoding
	if !parseAMD64(code[off:], &e) {
		return false
	}
	*in = insn{off: uint32(off), size: uint8(e.size), flow: flowAMD64(&e)}
	switch in.flow {
	case flowJump, flowCond, flowCall:
		in.target = addr + uint64(off) + uint64(e.size) + uint64(e.imm)
	}
	return true
}

// flowAMD64 classifies how control leaves the instruction. xbegin, which jumps
// on abort, counts as a conditional jump.
func flowAMD64(e *encoding) flow {
	if e.vex {
		return flowNext
	}
	switch e.kind {
	case 0:
		switch o := e.opcode; {
		case o >= 0x70 && o <= 0x7f, o >= 0xe0 && o <= 0xe3:
			return flowCond
		case o == 0xe8:
			return flowCall
		case o == 0xe9, o == 0xeb:
			return flowJump
		case o == 0xc2, o == 0xc3, o == 0xca, o == 0xcb, o == 0xcf:
			return flowReturn
		case o == 0xcc, o == 0xf4, o == 0xf1:
			return flowStop
		case o == 0xcd && uint8(e.imm) == 0x29:
			return flowStop
		case o == 0xc7 && e.reg&7 == 7:
			return flowCond
		case o == 0xff && (e.reg&7 == 2 || e.reg&7 == 3):
			return flowCallIndirect
		case o == 0xff && (e.reg&7 == 4 || e.reg&7 == 5):
			return flowJumpIndirect
		}
	case 1:
		switch o := e.opcode; {
		case o&0xf0 == 0x80:
			return flowCond
		case o == 0x0b, o == 0xb9, o == 0xff, o == 0x07, o == 0x35:
			return flowStop
		}
	}
	return flowNext
}

// stackAMD64 fills in the effect on rsp and rbp.
func stackAMD64(e *encoding, in *insn) {
	if in.writes&maskSP != 0 {
		in.sp = moveUnknown
	}
	if in.writes&maskBP != 0 {
		in.fp = moveUnknown
	}
	if e.vex || e.kind > 1 {
		return
	}
	push := func(n int32) { in.sp, in.spDelta = moveAdd, n }
	if e.kind == 1 {
		switch e.opcode {
		case 0xa0, 0xa8:
			push(-8)
		case 0xa1, 0xa9:
			push(8)
		}
		return
	}
	wide := e.rex&8 != 0
	o := e.opcode
	switch {
	case e.opsize && !wide:
		return // a 16-bit push or pop: unknown
	case o >= 0x50 && o <= 0x57, o == 0x68, o == 0x6a, o == 0x9c, o == 0xff && e.reg&7 == 6:
		push(-8)
	case o >= 0x58 && o <= 0x5f:
		if in.writes != maskSP { // not pop %rsp
			push(8)
		}
	case o == 0x9d:
		push(8)
	case o == 0x8f:
		if e.mod != 3 || e.rm != regSP {
			push(8)
		}
	case o == 0xc9: // leave: mov %rbp,%rsp; pop %rbp
		in.sp, in.spDelta = moveFromFP, 8
	case (o == 0x81 || o == 0x83) && wide && e.mod == 3 && e.rm == regSP:
		switch e.reg & 7 {
		case 0:
			push(int32(e.imm))
		case 5:
			push(int32(-e.imm))
		}
	case (o == 0x81 || o == 0x83) && wide && e.mod == 3 && e.rm == regBP:
		switch e.reg & 7 {
		case 0:
			in.fp, in.fpDelta = moveAdd, int32(e.imm)
		case 5:
			in.fp, in.fpDelta = moveAdd, int32(-e.imm)
		}
	case o == 0x89 && wide && e.mod == 3:
		copyAMD64(e.rm, e.reg, 0, in)
	case o == 0x8b && wide && e.mod == 3:
		copyAMD64(e.reg, e.rm, 0, in)
	case o == 0x8d && wide && !e.noBase && !e.hasIdx && !e.addr32:
		copyAMD64(e.reg, e.rm, e.disp, in)
	}
}

// copyAMD64 is dst = src + disp where both are rsp or rbp.
func copyAMD64(dst, src uint8, disp int32, in *insn) {
	switch {
	case dst == regSP && src == regSP:
		in.sp, in.spDelta = moveAdd, disp
	case dst == regSP && src == regBP:
		in.sp, in.spDelta = moveFromFP, disp
	case dst == regBP && src == regSP:
		in.fp, in.fpDelta = moveFromSP, disp
	case dst == regBP && src == regBP:
		in.fp, in.fpDelta = moveAdd, disp
	}
}

// storeAMD64 says where the instruction may write memory. Pushes are not
// counted: they go below the stack pointer.
func storeAMD64(e *encoding, in *insn) {
	if e.kind == 0 && !e.vex {
		switch o := e.opcode; {
		case o >= 0xa4 && o <= 0xa5, o >= 0xaa && o <= 0xab, o == 0xa2, o == 0xa3, o == 0x6c, o == 0x6d, o == 0xc8:
			in.store = storeOther
			return
		}
	}
	if !e.modrm || e.mod == 3 || readsOnlyAMD64(e) {
		return
	}
	switch {
	case e.thread:
		in.store = storeFixed // thread-local storage, never the stack
	case e.hasIdx:
		in.store = storeOther
	case e.noBase:
		in.store = storeFixed
	case e.rm == regSP:
		in.store, in.storeDisp = storeSP, e.disp
	case e.rm == regBP:
		in.store, in.storeDisp = storeFP, e.disp
	default:
		in.store = storeOther
	}
}

// readsOnlyAMD64 knows the common instructions whose memory operand is a
// source; of others it says no.
func readsOnlyAMD64(e *encoding) bool {
	o := e.opcode
	ext := e.reg & 7
	if e.vex {
		return e.kind == 1 && (o == 0x10 || o == 0x28 || o == 0x6f || o == 0xef || o == 0x57 || o == 0x58 || o == 0x59 || o == 0x2a ||
			o == 0x2e || o == 0x2f)
	}
	switch e.kind {
	case 0:
		switch {
		case o < 0x40:
			return o&7 == 2 || o&7 == 3 || o >= 0x38
		case o == 0x63, o == 0x69, o == 0x6b, o == 0x84, o == 0x85, o == 0x8a, o == 0x8b, o == 0x8d, o == 0x8e:
			return true
		case o >= 0x80 && o <= 0x83:
			return ext == 7
		case o == 0xf6, o == 0xf7:
			return ext != 2 && ext != 3
		case o == 0xff:
			return ext == 2 || ext == 4 || ext == 6
		}
	case 1:
		switch {
		case o >= 0x18 && o <= 0x1f, o == 0x10, o == 0x12, o == 0x14, o == 0x15, o == 0x16, o == 0x28, o == 0x2a, o >= 0x2c && o <= 0x2f:
			return true
		case o >= 0x40 && o <= 0x76, o == 0xa3, o == 0xaf, o >= 0xb6 && o <= 0xb8, o >= 0xbc && o <= 0xbf:
			return true
		case o == 0xba:
			return ext == 4
		case o >= 0xd0:
			return o != 0xd6 && o != 0xe7 && o != 0xf7
		}
	case 2:
		return o < 0xf0
	}
	return false
}

// loadAMD64 recognises what feeds an indirect jump: a function pointer from
// memory, or the steps of the jump-table idiom of gcc and clang in position-
// independent code: lea table(%rip),b; movslq (b,i,4),r; add b,r; jmp *r.
func loadAMD64(e *encoding, in *insn, next uint64) {
	if e.kind != 0 || e.vex || e.rex&8 == 0 || e.thread {
		return
	}
	switch o := e.opcode; {
	case o == 0x8b && e.mod != 3 && !e.hasIdx && (!e.noBase || e.rip):
		in.load, in.reg = loadSlot, e.reg
	case o == 0x8d && e.rip && !e.addr32:
		in.load, in.reg, in.target = loadAddr, e.reg, next+uint64(int64(e.disp))
	case o == 0x63 && e.mod != 3 && e.hasIdx && e.scale == 2 && !e.noBase && e.disp == 0:
		in.load, in.reg, in.base = loadTable, e.reg, e.rm
	case o == 0x01 && e.mod == 3:
		in.load, in.reg, in.base = loadAdd, e.rm, e.reg
	case o == 0x03 && e.mod == 3:
		in.load, in.reg, in.base = loadAdd, e.reg, e.rm
	}
}

// nop reports whether the instruction does nothing.
func (e *encoding) nop() bool {
	switch {
	case e.vex:
		return false
	case e.kind == 0:
		return e.opcode == 0x90 && e.rex&1 == 0 && e.rep == 0
	}
	return e.kind == 1 && (e.opcode == 0x1f || e.opcode == 0x0d)
}
