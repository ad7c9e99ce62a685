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

// byteReg is the register that holds byte register r: without REX, 4 to 7 are
// ah, ch, dh and bh.
func (e *encoding) byteReg(r uint8) uint32 {
	if e.rex == 0 && r >= 4 && r < 8 {
		r -= 4
	}
	return 1 << r
}

// rmReg is the register written where the r/m operand is the destination.
func (e *encoding) rmReg(byteOp bool) uint32 {
	switch {
	case e.mod != 3:
		return 0
	case byteOp:
		return e.byteReg(e.rm)
	}
	return 1 << e.rm
}

func (e *encoding) regReg(byteOp bool) uint32 {
	if byteOp {
		return e.byteReg(e.reg)
	}
	return 1 << e.reg
}

const (
	maskAX = 1 << regAX
	maskCX = 1 << regCX
	maskDX = 1 << regDX
	maskBX = 1 << regBX
	maskSP = 1 << regSP
	maskBP = 1 << regBP
	maskSI = 1 << regSI
	maskDI = 1 << regDI
)

// writesAMD64 returns the general registers the instruction may write, without
// what a called function writes; what it does not know writes all.
func writesAMD64(e *encoding) uint32 {
	switch {
	case e.vex:
		return writesVEX(e)
	case e.kind == 0:
		return writesOneByte(e)
	case e.kind == 1:
		return writesTwoByte(e)
	case e.kind == 2:
		if e.opcode >= 0xf0 { // movbe, crc32, adcx, adox, and newer ones
			return e.rmReg(false) | 1<<e.reg
		}
		return 0
	}
	switch o := e.opcode; {
	case o >= 0x14 && o <= 0x17: // pextr
		return e.rmReg(false)
	case o == 0x61 || o == 0x63: // pcmpestri, pcmpistri
		return maskCX
	}
	return 0
}

func writesOneByte(e *encoding) uint32 {
	o := e.opcode
	byteOp := o&1 == 0
	ext := e.reg & 7
	switch {
	case o < 0x40:
		if o >= 0x38 {
			return 0 // cmp
		}
		switch o & 7 {
		case 0, 1:
			return e.rmReg(byteOp)
		case 2, 3:
			return e.regReg(byteOp)
		}
		return maskAX
	case o >= 0x50 && o <= 0x57:
		return maskSP
	case o >= 0x58 && o <= 0x5f:
		return maskSP | 1<<(o&7|e.rex&1<<3)
	case o == 0x63, o == 0x69, o == 0x6b, o == 0x8d:
		return 1 << e.reg
	case o == 0x68, o == 0x6a, o == 0x9c, o == 0x9d:
		return maskSP
	case o >= 0x70 && o <= 0x7f, o == 0xe3, o == 0xe9, o == 0xeb, o == 0xe8:
		return 0
	case o >= 0x80 && o <= 0x83:
		if ext == 7 {
			return 0
		}
		return e.rmReg(byteOp)
	case o == 0x84, o == 0x85, o == 0x9b, o == 0x9e, o == 0xa8, o == 0xa9, o == 0x8e:
		return 0
	case o == 0x86, o == 0x87:
		return e.rmReg(byteOp) | e.regReg(byteOp)
	case o == 0x88, o == 0x89, o == 0x8c:
		return e.rmReg(o == 0x88)
	case o == 0x8a, o == 0x8b:
		return e.regReg(byteOp)
	case o == 0x8f:
		return e.rmReg(false) | maskSP
	case o >= 0x90 && o <= 0x97:
		if r := o&7 | e.rex&1<<3; r != 0 {
			return maskAX | 1<<r
		}
		return 0
	case o == 0x98, o == 0x9f, o == 0xa0, o == 0xa1, o == 0xd7:
		return maskAX
	case o == 0x99:
		return maskDX
	case o == 0xa2, o == 0xa3:
		return 0
	case o >= 0xa4 && o <= 0xa7:
		return maskSI | maskDI | maskCX
	case o >= 0xaa && o <= 0xaf:
		return maskAX | maskSI | maskDI | maskCX
	case o >= 0xb0 && o <= 0xb7:
		return e.byteReg(o&7 | e.rex&1<<3)
	case o >= 0xb8 && o <= 0xbf:
		return 1 << (o&7 | e.rex&1<<3)
	case o == 0xc0, o == 0xc1, o >= 0xd0 && o <= 0xd3:
		return e.rmReg(byteOp)
	case o == 0xc6, o == 0xc7:
		if ext == 7 {
			return maskAX
		}
		return e.rmReg(byteOp)
	case o == 0xc9:
		return maskSP | maskBP
	case o == 0xc2, o == 0xc3:
		return maskSP
	case o >= 0xd8 && o <= 0xdf:
		return maskAX // fnstsw %ax
	case o >= 0xe0 && o <= 0xe2:
		return maskCX
	case o == 0xf6, o == 0xf7:
		switch {
		case ext < 2:
			return 0
		case ext < 4:
			return e.rmReg(byteOp)
		}
		return maskAX | maskDX
	case o == 0xf5, o >= 0xf8 && o <= 0xfd, o == 0xcc, o == 0xf4:
		return 0
	case o == 0xfe, o == 0xff:
		switch ext {
		case 0, 1:
			return e.rmReg(byteOp)
		case 4, 2:
			return 0
		case 6:
			return maskSP
		}
	}
	return writesAll
}

func writesTwoByte(e *encoding) uint32 {
	o := e.opcode
	ext := e.reg & 7
	switch {
	case o == 0x0b, o == 0x0d, o == 0x77, o == 0xb9, o == 0xff:
		return 0
	case o == 0x1e:
		if e.rep == 0xf3 && e.mod == 3 && ext == 1 { // rdssp
			return 1 << e.rm
		}
		return 0
	case o >= 0x10 && o <= 0x1f, o >= 0x28 && o <= 0x2b, o == 0x2e, o == 0x2f:
		return 0
	case o == 0x2c, o == 0x2d, o == 0x50, o == 0xd7, o == 0xc5:
		return 1 << e.reg
	case o == 0x31:
		return maskAX | maskDX
	case o >= 0x40 && o <= 0x4f, o == 0xaf, o >= 0xb6 && o <= 0xb8, o >= 0xbc && o <= 0xbf:
		return 1 << e.reg
	case o == 0x7e:
		if e.rep == 0xf3 {
			return 0
		}
		return e.rmReg(false)
	case o >= 0x51 && o <= 0x76, o == 0x7c, o == 0x7d, o == 0x7f:
		return 0
	case o&0xf0 == 0x80, o == 0xa3:
		return 0
	case o >= 0x90 && o <= 0x9f:
		return e.rmReg(true)
	case o == 0xa0, o == 0xa1, o == 0xa8, o == 0xa9:
		return maskSP
	case o == 0xa2:
		return maskAX | maskBX | maskCX | maskDX
	case o == 0xa4, o == 0xa5, o == 0xab, o == 0xac, o == 0xad, o == 0xb3, o == 0xbb:
		return e.rmReg(false)
	case o == 0xae:
		if e.mod == 3 && e.rep != 0 { // rdfsbase and its kin
			return 1 << e.rm
		}
		return 0
	case o == 0xb0, o == 0xb1:
		return e.rmReg(o == 0xb0) | maskAX
	case o == 0xba:
		if ext == 4 {
			return 0
		}
		return e.rmReg(false)
	case o == 0xc0, o == 0xc1:
		return e.rmReg(o == 0xc0) | e.regReg(o == 0xc0)
	case o == 0xc2, o == 0xc3, o == 0xc4, o == 0xc6:
		return 0
	case o == 0xc7:
		return e.rmReg(false) | maskAX | maskDX
	case o >= 0xc8 && o <= 0xcf:
		return 1 << (o&7 | e.rex&1<<3)
	case o >= 0xd0:
		return 0
	}
	return writesAll
}

// writesVEX names the few AVX, AVX-512 and BMI instructions that write a
// general register.
func writesVEX(e *encoding) uint32 {
	o := e.opcode
	switch e.kind {
	case 1, 5:
		switch o {
		case 0x2c, 0x2d, 0x50, 0xd7, 0xc5, 0x93:
			return 1 << e.reg
		case 0x78, 0x79:
			return 1 << e.reg
		case 0x7e:
			if e.rep != 0xf3 {
				return e.rmReg(false)
			}
		}
	case 2:
		switch {
		case e.evex:
		case o == 0xf3:
			return 1 << e.vvvv
		case o == 0xf6:
			return 1<<e.reg | 1<<e.vvvv
		case o >= 0xf2 && o <= 0xf7:
			return 1 << e.reg
		case o >= 0xe0 && o <= 0xef: // cmpccxadd
			return 1<<e.reg | 1<<e.vvvv
		}
	case 3:
		switch {
		case o >= 0x14 && o <= 0x17:
			return e.rmReg(false)
		case o == 0x61 || o == 0x63:
			return maskCX
		case o == 0xf0:
			return 1 << e.reg
		}
	}
	return 0
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
		return e.kind == 1 && (o == 0x10 || o == 0x28 || o == 0x6f || o == 0xef || o == 0x57 || o == 0x58 || o == 0x59 || o == 0x2a || o == 0x2e || o == 0x2f)
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

// gradeAMD64 follows arch/x86/kernel/uprobes.c: uprobe_init_insn for what is
// refused, branch_setup_xol_ops and push_setup_xol_ops for what is emulated.
func gradeAMD64(e *encoding, c []byte, in *insn) {
	in.grade = gradeStepped
	o := e.opcode
	one := e.kind == 0 && !e.vex
	two := e.kind == 1 && !e.vex
	in.nop = e.nop()
	switch {
	case e.lock, e.segment: // is_prefix_bad
		in.grade = gradeRefused
	case e.vex, e.kind > 1: // the kernel's tables judge these by accident
		in.grade = gradeRefused
	case two && o == 0x1f:
		in.grade = gradeLongNopAMD64(c)
	case one && o == 0x90:
		// The kernel takes every prefixed 0x90 for a nop, also xchg %r8,%rax.
		in.grade = gradeRefused
		if in.nop && len(c) <= 2 {
			in.grade = gradeEmulated
		}
	case in.flow == flowJump, in.flow == flowCall,
		in.flow == flowCond && (two || o&0xf0 == 0x70):
		in.grade = gradeEmulated
		if e.opsize { // -ENOTSUPP: registration fails
			in.grade = gradeRefused
		}
	case one && o >= 0x50 && o <= 0x57:
		if len(c) == 1 || len(c) == 2 && c[0] == 0x41 {
			in.grade = gradeEmulated
		}
	case one && !goodOneByte(e), two && !goodTwoByte(o), in.flow == flowStop:
		in.grade = gradeRefused
	}
}

// gradeLongNopAMD64 knows the nops of x86_nops, 3 to 8 bytes; other forms of
// 0f 1f are single-stepped.
func gradeLongNopAMD64(c []byte) grade {
	switch string(c) {
	case "\x0f\x1f\x44\x00\x00":
		return gradeNop5
	case "\x0f\x1f\x00", "\x0f\x1f\x40\x00", "\x66\x0f\x1f\x44\x00\x00",
		"\x0f\x1f\x80\x00\x00\x00\x00", "\x0f\x1f\x84\x00\x00\x00\x00\x00":
		return gradeLongNop
	}
	return gradeStepped
}

// goodOneByte is good_insns_64 without the instructions that fault in user
// space or load a segment.
func goodOneByte(e *encoding) bool {
	switch o := e.opcode; {
	case o == 0x17, o == 0x8e, o == 0x9a, o >= 0x6c && o <= 0x6f, o == 0xca, o == 0xcb,
		o == 0xcc, o == 0xcd, o == 0xcf, o == 0xd6, o >= 0xe4 && o <= 0xe7,
		o >= 0xec && o <= 0xef, o == 0xf1, o == 0xf4, o == 0xfa, o == 0xfb:
		return false
	case o == 0xc7 && e.reg&7 == 7, o == 0xc6 && e.reg&7 == 7:
		return false
	case o == 0xff && (e.reg&7 == 3 || e.reg&7 == 5):
		return false
	}
	return true
}

// goodTwoByte is the part of good_2byte_insns that compilers emit.
func goodTwoByte(o uint8) bool {
	switch {
	case o >= 0x10 && o <= 0x1f, o >= 0x28 && o <= 0x2f, o >= 0x40 && o <= 0x76,
		o >= 0x7e && o <= 0x9f, o >= 0xa3 && o <= 0xa5, o >= 0xab && o <= 0xad,
		o == 0xaf, o >= 0xb0 && o <= 0xb1, o == 0xb3, o == 0xb6, o == 0xb7,
		o >= 0xba && o <= 0xc6, o >= 0xc8 && o <= 0xfe:
		return true
	}
	return false
}
