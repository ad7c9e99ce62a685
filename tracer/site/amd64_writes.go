package site

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
