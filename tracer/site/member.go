package site

import "encoding/binary"

// Member finds where in its object an accessor has the member that it returns or counts
// up: the offset of the first load through its first argument, this. Every build of a
// library lays its objects out as it likes; the accessor is in the library too, and
// knows. False where its code is not that simple.
func Member(f Function) (offset int16, ok bool) {
	found, ok := int64(0), false
	if f.Arch == ARM64 {
		found, ok = memberARM64(f.Code)
	} else {
		found, ok = memberAMD64(f.Code)
	}
	if !ok || found < 0 || found > mostMember {
		return 0, false
	}
	return int16(found), true
}

// mostMember bounds what is taken for the offset of a member.
const mostMember = 1 << 14

// memberLook is how many instructions are looked at.
const memberLook = 24

// keptAMD64 are the registers that a call leaves as they are: rbx, rbp, r12 to r15.
const keptAMD64 = 1<<regBX | 1<<regBP | 0xf<<12

func memberAMD64(code []byte) (int64, bool) {
	this := uint32(1 << regDI) // the registers that hold it
	for range memberLook {
		var e encoding
		var in insn
		if !parseAMD64(code, &e) || !decodeAMD64(code, 0, 0, &in) {
			return 0, false
		}
		long, legacy := e.rex&8 != 0, e.kind == 0 && !e.vex
		switch {
		case in.flow == flowCall || in.flow == flowCallIndirect:
			this &= keptAMD64
		case in.flow != flowNext:
			return 0, false
		case legacy && e.opcode == 0x89 && e.mod == 3 && long && this>>e.reg&1 == 1: // mov %this, %r
			this |= 1 << e.rm
		case legacy && e.opcode == 0x8b && e.mod == 3 && long && this>>e.rm&1 == 1: // mov %r, %this
			this |= 1 << e.reg
		case legacy && e.opcode == 0x8b && e.modrm && e.mod != 3 && !e.rip && !e.noBase && !e.hasIdx && !e.thread &&
			this>>e.rm&1 == 1: // mov disp(%this), %r
			return int64(e.disp), true
		default:
			this &^= in.writes
		}
		code = code[e.size:]
	}
	return 0, false
}

// keptARM64 likewise: x19 to x28.
const keptARM64 = 0x3ff << 19

func memberARM64(code []byte) (int64, bool) {
	this := uint32(1)
	for at := 0; at < 4*memberLook && at+4 <= len(code); at += 4 {
		var in insn
		if !decodeARM64(code, at, 0, &in) {
			return 0, false
		}
		w := binary.LittleEndian.Uint32(code[at:])
		to, from := w&31, w>>5&31
		switch {
		case in.flow == flowCall || in.flow == flowCallIndirect:
			this &= keptARM64
		case in.flow != flowNext:
			return 0, false
		case w&0xffe0ffe0 == 0xaa0003e0 && w>>16&31 < 31 && this>>(w>>16&31)&1 == 1: // mov xd, xm
			this |= 1 << to
		case w&0xbfc00000 == 0xb9400000 && this>>from&1 == 1: // ldr wt or xt, [xn, #imm]
			return int64(w>>10&0xfff) << (w >> 30), true
		default:
			this &^= in.writes
		}
	}
	return 0, false
}
