package site

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
