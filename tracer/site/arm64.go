package site

import "encoding/binary"

const (
	arm64FP   = 29
	arm64Link = 30
	arm64SP   = 31
)

func signed(v uint32, bits uint) int64 { return int64(v) << (64 - bits) >> (64 - bits) }

// decodeARM64 decodes the instruction at code[off:]. Which instructions a
// uprobe simulates, executes out of line or refuses follows
// arch/arm64/kernel/probes/decode-insn.c; what a class of instructions writes
// is over-estimated.
func decodeARM64(code []byte, off int, addr uint64, in *insn) bool {
	if off%4 != 0 || off+4 > len(code) {
		return false
	}
	w := binary.LittleEndian.Uint32(code[off:])
	pc := addr + uint64(off)
	*in = insn{off: uint32(off), size: 4, grade: gradeStepped}
	in.linkUse = usesLinkARM64(w)
	switch {
	case w>>16 == 0: // udf
		in.flow, in.grade = flowStop, gradeRefused
	case w>>26 == 0x05, w>>26 == 0x25: // b, bl
		in.flow, in.grade = flowJump, gradeEmulated
		if w>>31 == 1 {
			in.flow, in.linkUse = flowCall, true
		}
		in.target = pc + uint64(signed(w&0x3ffffff, 26)<<2)
	case w>>24 == 0x54: // b.cond, bc.cond
		in.flow, in.target = flowCond, pc+uint64(signed(w>>5&0x7ffff, 19)<<2)
		in.grade = gradeEmulated
		if w&0x10 != 0 {
			in.grade = gradeRefused
		}
	case w>>25&0x3f == 0x1a: // cbz, cbnz
		in.flow, in.grade = flowCond, gradeEmulated
		in.target = pc + uint64(signed(w>>5&0x7ffff, 19)<<2)
		in.linkUse = w&31 == arm64Link
	case w>>25&0x3f == 0x1b: // tbz, tbnz
		in.flow, in.grade = flowCond, gradeEmulated
		in.target = pc + uint64(signed(w>>5&0x3fff, 14)<<2)
		in.linkUse = w&31 == arm64Link
	case w>>25 == 0x6b: // register branches
		branchRegisterARM64(w, in)
	case w>>24 == 0xd4: // svc, hvc, smc, brk, hlt
		in.grade = gradeRefused
		in.writes = writesAll
		if w&0xffe0001f != 0xd4000001 {
			in.flow = flowStop
		}
	case w>>22 == 0x354: // system: hints, barriers, mrs, msr
		systemARM64(w, in)
	case w>>24&0x1f == 0x10: // adr, adrp
		in.grade = gradeEmulated
		writeARM64(in, w&31, false)
		in.linkUse = w&31 == arm64Link
		in.load, in.reg = loadAddr, uint8(w&31)
		imm := signed(w>>5&0x7ffff<<2|w>>29&3, 21)
		in.target = pc + uint64(imm)
		if w>>31 == 1 {
			in.target = pc&^0xfff + uint64(imm<<12)
		}
	case w>>24&0x3b == 0x18: // literal loads
		in.linkUse = w&31 == arm64Link
		switch {
		case w>>26&1 == 1, w>>30 == 3: // vectors and prefetches lose their base out of line
			in.grade = gradeRefused
		default:
			in.grade = gradeEmulated
			writeARM64(in, w&31, false)
		}
	case w>>26&7 == 4: // data processing, immediate
		immediateARM64(w, in)
	case w>>25&7 == 5: // data processing, register
		// Of sums with an extended register 31 is the stack pointer, if no flags are
		// set: sub sp, sp, x0 makes room for alloca.
		extended := w>>24&0x1f == 0x0b && w>>21&1 == 1
		writeARM64(in, w&31, extended && w>>29&1 == 0)
		if w>>21&0xff == 0x59 && w>>31 == 1 && w>>10&0x3f == 0 { // add xd, xn, xm
			in.load, in.reg, in.base = loadAdd, uint8(w&31), uint8(w>>5&31)
		}
	case w>>25&7 == 7: // vectors; a few of them write a general register
		writeARM64(in, w&31, false)
	case w>>25&5 == 4: // loads and stores
		memoryARM64(w, in)
	case w>>25&15 == 2: // SVE
		writeARM64(in, w&31, true)
		in.sp = moveUnknown
		in.store = storeOther
	default:
		return false
	}
	return true
}

// writeARM64 notes a write of register r; where sp is true, 31 is the stack
// pointer and not the zero register.
func writeARM64(in *insn, r uint32, sp bool) {
	switch {
	case r < arm64SP:
		in.writes |= 1 << r
		if r == arm64FP {
			in.fp = moveUnknown
		}
	case sp:
		in.sp = moveUnknown
	}
}

// usesLinkARM64 reports whether any register field names x30; it is meant to
// say yes too often.
func usesLinkARM64(w uint32) bool {
	return w&31 == arm64Link || w>>5&31 == arm64Link || w>>10&31 == arm64Link || w>>16&31 == arm64Link
}

func branchRegisterARM64(w uint32, in *insn) {
	in.grade = gradeRefused // the authenticating forms, eret
	plain := w&0xfc1f == 0 && w>>16&31 == 31
	op := w >> 21 & 15
	switch op {
	case 0, 8: // br, braaz; braa
		in.flow = flowJumpIndirect
		if plain && op == 0 {
			in.jump, in.reg = jumpRegister, uint8(w>>5&31)
		}
	case 1, 9:
		in.flow = flowCallIndirect
	case 2:
		in.flow = flowReturn
	default:
		in.flow = flowStop
	}
	if plain && op <= 2 {
		in.grade = gradeEmulated
	}
	in.linkUse = true
}

func systemARM64(w uint32, in *insn) {
	in.linkUse = w&31 == arm64Link
	if w&0xfffff01f == 0xd503201f { // hint
		hint := w >> 5 & 0x7f
		in.linkUse = false
		switch {
		case hint == 0:
			in.nop = true
			in.grade = gradeLongNop // simulated from 6.12, else out of line
		case hint == 7, hint >= 8 && hint <= 15, hint >= 24 && hint <= 31: // xpaclri, pac*, aut*
			in.linkUse = true
			in.writes = 1<<arm64Link | 1<<17
		case hint >= 32 && hint <= 38 && hint%2 == 0: // bti
		default:
			in.grade = gradeRefused
		}
		return
	}
	in.grade = gradeRefused
	switch {
	case w>>20&3 == 3 && w>>21&1 == 1: // mrs
		writeARM64(in, w&31, false)
		// Stepped out of line, a register of user space reads the same: the thread
		// pointer, with which functions of stack protectors and thread-local
		// storage begin. Not DAIF, which the step itself changes; the registers
		// of EL1 the kernel emulates by an exception of their own.
		if w>>19&3 == 3 && w>>16&7 == 3 && w>>5&0xffff != 0xda11 {
			in.grade = gradeStepped
		}
	case w>>19&7 == 0, w&0xfffff000 == 0xd5033000, w>>20 == 0xd51: // msr, barriers
	default:
		in.writes, in.sp, in.fp = writesAll, moveUnknown, moveUnknown
	}
}

func immediateARM64(w uint32, in *insn) {
	rd, rn := w&31, w>>5&31
	in.linkUse = rd == arm64Link || rn == arm64Link
	if w>>23&7 != 2 { // not add or sub of an immediate
		logical := w>>23&7 == 4 && w>>29&3 != 3
		wide := w>>23&7 == 5 // movz, movn, movk have no source register
		if wide {
			in.linkUse = rd == arm64Link
		}
		writeARM64(in, rd, logical || w>>23&7 == 3)
		return
	}
	flags := w>>29&1 == 1
	imm := int32(w >> 10 & 0xfff)
	if w>>22&1 == 1 {
		imm <<= 12
	}
	if w>>30&1 == 1 {
		imm = -imm
	}
	writeARM64(in, rd, !flags)
	if flags || w>>31 == 0 {
		return
	}
	switch {
	case rd == arm64SP && rn == arm64SP:
		in.sp, in.spDelta = moveAdd, imm
	case rd == arm64SP && rn == arm64FP:
		in.sp, in.spDelta = moveFromFP, imm
	case rd == arm64FP && rn == arm64SP:
		in.fp, in.fpDelta = moveFromSP, imm
	case rd == arm64FP && rn == arm64FP:
		in.fp, in.fpDelta = moveAdd, imm
	}
}

// memoryARM64 covers pairs and single registers; atomics and exclusives, which
// must not be interrupted by a trap, are refused as sites.
func memoryARM64(w uint32, in *insn) {
	rt, rn, rt2 := w&31, w>>5&31, w>>10&31
	vector := w>>26&1 == 1
	var load, back bool
	var delta, disp int32
	known := false
	switch w >> 27 & 7 {
	case 5: // pairs
		scale := 2 + w>>31
		if vector {
			scale = 2 + w>>30
		}
		imm := int32(signed(w>>15&0x7f, 7)) << scale
		load = w>>22&1 == 1
		known = true
		switch w >> 23 & 3 {
		case 1: // after
			back, delta = true, imm
		case 3: // before
			back, delta, disp = true, imm, imm
		default:
			disp = imm
		}
		if load && !vector {
			writeARM64(in, rt, false)
			writeARM64(in, rt2, false)
		}
		if !vector {
			in.linkUse = rt == arm64Link || rt2 == arm64Link || rn == arm64Link
		}
	case 7: // single registers
		opc := w >> 22 & 3
		load = opc != 0 && !(vector && opc == 2)
		switch {
		case w>>24&1 == 1:
			known = true
			size := w >> 30
			if vector && opc&2 != 0 {
				size = 4
			}
			disp = int32(w>>10&0xfff) << size
			in.linkUse = rt == arm64Link || rn == arm64Link
			if load && !vector && size == 3 {
				in.load, in.reg = loadSlot, uint8(rt)
			}
		case w>>21&1 == 0:
			imm := int32(signed(w>>12&0x1ff, 9))
			known = true
			switch w >> 10 & 3 {
			case 1:
				back, delta = true, imm
			case 3:
				back, delta, disp = true, imm, imm
			default:
				disp = imm
			}
			in.linkUse = rt == arm64Link || rn == arm64Link
		case w>>10&3 != 2: // atomics, pointer authentication
			in.writes, in.sp, in.fp = writesAll, moveUnknown, moveUnknown
			in.store, in.grade = storeOther, gradeRefused
			return
		}
		if load && !vector {
			writeARM64(in, rt, false)
		}
	default:
		in.grade = gradeRefused
		in.writes, in.fp, in.store = writesAll, moveUnknown, storeOther
		if w>>26&1 == 1 || w>>24&0x3f == 0x08 { // vector structures, exclusives
			in.sp, in.fp = moveNone, moveNone
			if rn == arm64SP && w>>23&1 == 1 && vector {
				in.sp = moveUnknown
			}
		}
		return
	}
	if back {
		writeARM64(in, rn, true)
		switch rn {
		case arm64SP:
			in.sp, in.spDelta = moveAdd, delta
		case arm64FP:
			in.fp, in.fpDelta = moveAdd, delta
		}
	}
	if load {
		return
	}
	in.store = storeOther
	if known && rn == arm64SP {
		in.store, in.storeDisp = storeSP, disp
	} else if known && rn == arm64FP {
		in.store, in.storeDisp = storeFP, disp
	}
}
