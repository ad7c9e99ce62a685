package site

import "encoding/binary"

// x86-64 general registers by their encoding.
const (
	regAX = iota
	regCX
	regDX
	regBX
	regSP
	regBP
	regSI
	regDI
)

// Operand bytes that follow an opcode.
const (
	opM   = 1 << iota // ModRM
	opI8              // 8-bit immediate
	opI16             // 16-bit immediate
	opIz              // 32-bit immediate, 16-bit under an operand-size prefix
	opBad             // not an instruction in 64-bit mode
)

// oneByte and twoByte hold the operand bytes of the legacy opcode maps
// (Intel SDM volume 2, appendix A). Opcodes with irregular operands are
// completed in decodeAMD64.
var oneByte, twoByte = opcodeMaps()

func opcodeMaps() (one, two [256]uint8) {
	set := func(m *[256]uint8, v uint8, ops ...int) {
		for _, o := range ops {
			m[o] = v
		}
	}
	span := func(m *[256]uint8, v uint8, lo, hi int) {
		for o := lo; o <= hi; o++ {
			m[o] = v
		}
	}
	for row := 0; row < 0x40; row += 8 {
		span(&one, opM, row, row+3)
		one[row+4], one[row+5] = opI8, opIz
		one[row+6], one[row+7] = opBad, opBad
	}
	set(&one, opBad, 0x60, 0x61, 0x82, 0x9a, 0xce, 0xd4, 0xd5, 0xd6, 0xea)
	set(&one, opM, 0x63, 0xd0, 0xd1, 0xd2, 0xd3, 0xf6, 0xf7, 0xfe, 0xff)
	set(&one, opIz, 0x68, 0xa9, 0xe8, 0xe9)
	set(&one, opM|opIz, 0x69, 0x81, 0xc7)
	set(&one, opI8, 0x6a, 0xa8, 0xcd, 0xeb)
	set(&one, opM|opI8, 0x6b, 0x80, 0x83, 0xc0, 0xc1, 0xc6)
	span(&one, opI8, 0x70, 0x7f)
	span(&one, opM, 0x84, 0x8f)
	span(&one, opI8, 0xb0, 0xb7)
	set(&one, opI16, 0xc2, 0xca)
	one[0xc8] = opI16 | opI8
	span(&one, opM, 0xd8, 0xdf)
	span(&one, opI8, 0xe0, 0xe7)

	span(&two, opM, 0x00, 0x03)
	set(&two, opBad, 0x04, 0x0a, 0x0c, 0x24, 0x25, 0x26, 0x27, 0x36, 0x39, 0x3b, 0x3c, 0x3d, 0x3e, 0x3f, 0x7a, 0x7b, 0xa6, 0xa7)
	two[0x0d] = opM
	two[0x0f] = opM | opI8
	span(&two, opM, 0x10, 0x23)
	span(&two, opM, 0x28, 0x2f)
	span(&two, opM, 0x40, 0x6f)
	span(&two, opM|opI8, 0x70, 0x73)
	span(&two, opM, 0x74, 0x76)
	set(&two, opM, 0x78, 0x79, 0x7c, 0x7d, 0x7e, 0x7f)
	span(&two, opIz, 0x80, 0x8f)
	span(&two, opM, 0x90, 0x9f)
	set(&two, opM, 0xa3, 0xa5, 0xab, 0xad, 0xae, 0xaf)
	set(&two, opM|opI8, 0xa4, 0xac, 0xba, 0xc2, 0xc4, 0xc5, 0xc6)
	span(&two, opM, 0xb0, 0xb9)
	span(&two, opM, 0xbb, 0xc1)
	set(&two, opM, 0xc3, 0xc7)
	span(&two, opM, 0xd0, 0xff)
	return one, two
}

// encoding is the anatomy of one x86-64 instruction.
type encoding struct {
	rex     uint8 // 0 where absent
	rep     uint8 // 0xf2, 0xf3 or 0
	opsize  bool  // 66
	addr32  bool  // 67
	lock    bool  // f0
	segment bool  // cs, ss, ds, es
	thread  bool  // fs, gs
	vex     bool  // VEX or EVEX
	evex    bool
	kind    uint8 // opcode map: 0 one byte, 1 0f, 2 0f38, 3 0f3a, 5 and 6 EVEX
	opcode  uint8
	vvvv    uint8 // VEX's extra register
	modrm   bool
	mod     uint8
	reg, rm uint8 // with REX applied; rm names a register only where mod is 3
	noBase  bool  // memory operand without a base register
	rip     bool  // memory operand relative to the next instruction
	index   uint8 // index register where hasIdx
	hasIdx  bool
	scale   uint8
	disp    int32
	imm     int64
	size    int
}

// parseAMD64 splits the instruction at the start of c. It knows the legacy,
// VEX and EVEX encodings; XOP, APX and 3DNow! extensions it does not know.
func parseAMD64(c []byte, e *encoding) bool {
	*e = encoding{}
	if len(c) > 15 {
		c = c[:15]
	}
	i := 0
prefixes:
	for ; ; i++ {
		if i >= len(c) {
			return false
		}
		switch b := c[i]; b {
		case 0x66:
			e.opsize = true
		case 0x67:
			e.addr32 = true
		case 0xf2, 0xf3:
			e.rep = b
		case 0xf0:
			e.lock = true
		case 0x26, 0x2e, 0x36, 0x3e:
			e.segment = true
		case 0x64, 0x65:
			e.thread = true
		default:
			if b&0xf0 != 0x40 {
				break prefixes
			}
			// A REX prefix counts only directly before the opcode.
			if i+1 < len(c) && !isPrefix(c[i+1]) {
				e.rex = b
			}
		}
	}
	b := c[i]
	i++
	var ops uint8
	r, x, bb := e.rex&4<<1, e.rex&2<<2, e.rex&1<<3
	switch {
	case b == 0xc5 || b == 0xc4 || b == 0x62:
		if e.rex != 0 || e.lock || e.rep != 0 || e.opsize {
			return false
		}
		n := map3(b)
		if i+n >= len(c) {
			return false
		}
		p := c[i : i+n]
		i += n
		e.vex = true
		r = ^p[0] >> 7 << 3
		pp := p[n-1]
		switch b {
		case 0xc5:
			e.kind, e.vvvv = 1, ^p[0]>>3&15
		case 0xc4:
			x, bb = ^p[0]>>6&1<<3, ^p[0]>>5&1<<3
			e.kind, e.vvvv = p[0]&0x1f, ^p[1]>>3&15
			e.rex = p[1] >> 7 << 3 // W
		default:
			e.evex = true
			x, bb = ^p[0]>>6&1<<3, ^p[0]>>5&1<<3
			e.kind, e.vvvv, pp = p[0]&7, ^p[1]>>3&15, p[1]
			e.rex = p[1] >> 7 << 3
			if p[0]&8 != 0 || p[1]&4 == 0 {
				return false // APX
			}
		}
		e.opsize = pp&3 == 1
		e.rep = [4]uint8{0, 0, 0xf3, 0xf2}[pp&3]
		e.opcode = c[i]
		i++
		switch {
		case e.kind == 1:
			ops = opM
			switch o := e.opcode; {
			case o == 0x77 && !e.evex:
				ops = 0
			case o >= 0x70 && o <= 0x73, o == 0xc2, o >= 0xc4 && o <= 0xc6:
				ops |= opI8
			}
		case e.kind == 2, e.evex && (e.kind == 5 || e.kind == 6):
			ops = opM
		case e.kind == 3:
			ops = opM | opI8
		default:
			return false
		}
	case b != 0x0f:
		e.opcode = b
		ops = oneByte[b]
	default:
		if i >= len(c) {
			return false
		}
		e.kind, e.opcode = 1, c[i]
		i++
		if e.opcode == 0x38 || e.opcode == 0x3a {
			ops = opM
			e.kind = 2
			if e.opcode == 0x3a {
				e.kind = 3
				ops |= opI8
			}
			if i >= len(c) {
				return false
			}
			e.opcode = c[i]
			i++
		} else {
			ops = twoByte[e.opcode]
			if e.opcode&0xfe == 0x78 && (e.opsize || e.rep != 0) {
				return false // SSE4a
			}
		}
	}
	if ops&opBad != 0 {
		return false
	}
	if ops&opM != 0 {
		if i >= len(c) {
			return false
		}
		m := c[i]
		i++
		e.modrm, e.mod, e.reg, e.rm = true, m>>6, m>>3&7|r, m&7
		if e.kind == 1 && !e.vex && e.opcode >= 0x20 && e.opcode <= 0x23 {
			e.mod = 3 // mov to and from control registers ignores mod
		}
		switch {
		case e.mod == 3:
			e.rm |= bb
		case e.rm == 4:
			if i >= len(c) {
				return false
			}
			s := c[i]
			i++
			e.scale, e.index = s>>6, s>>3&7|x
			e.hasIdx = e.index != 4
			e.rm = s & 7
			if e.rm == 5 && e.mod == 0 {
				e.noBase = true
			} else {
				e.rm |= bb
			}
		case e.rm == 5 && e.mod == 0:
			e.rip, e.noBase = true, true
		default:
			e.rm |= bb
		}
		switch {
		case e.mod == 1:
			if i >= len(c) {
				return false
			}
			e.disp = int32(int8(c[i]))
			i++
		case e.mod == 2, e.mod == 0 && e.noBase:
			if i+4 > len(c) {
				return false
			}
			e.disp = int32(binary.LittleEndian.Uint32(c[i:]))
			i += 4
		}
	}
	imm := immSize(e, ops)
	if imm < 0 || i+imm > len(c) {
		return false
	}
	switch imm {
	case 1:
		e.imm = int64(int8(c[i]))
	case 2:
		e.imm = int64(int16(binary.LittleEndian.Uint16(c[i:])))
	case 4:
		e.imm = int64(int32(binary.LittleEndian.Uint32(c[i:])))
	case 8:
		e.imm = int64(binary.LittleEndian.Uint64(c[i:]))
	}
	e.size = i + imm
	return true
}

func map3(b byte) int {
	switch b {
	case 0xc5:
		return 1
	case 0xc4:
		return 2
	}
	return 3
}

func isPrefix(b byte) bool {
	switch b {
	case 0x66, 0x67, 0xf2, 0xf3, 0xf0, 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65:
		return true
	}
	return b&0xf0 == 0x40
}

// immSize returns the bytes of immediate data, or -1 where the encoding is not
// valid.
func immSize(e *encoding, ops uint8) int {
	n := 0
	if ops&opI8 != 0 {
		n++
	}
	if ops&opI16 != 0 {
		n += 2
	}
	if ops&opIz != 0 {
		n += 4
		if e.opsize && e.rex&8 == 0 {
			n -= 2
		}
	}
	if e.vex {
		return n
	}
	if e.kind == 1 && e.opcode&0xf0 == 0x80 && n != 4 {
		return -1 // a 16-bit branch: Intel and AMD disagree on its length
	}
	if e.kind != 0 {
		return n
	}
	switch o := e.opcode; {
	case (o == 0xe8 || o == 0xe9) && n != 4:
		return -1
	case o >= 0xb8 && o <= 0xbf:
		switch {
		case e.rex&8 != 0:
			return 8
		case e.opsize:
			return 2
		}
		return 4
	case o >= 0xa0 && o <= 0xa3:
		if e.addr32 {
			return 4
		}
		return 8
	case o == 0xf6 && e.reg&7 < 2:
		return 1
	case o == 0xf7 && e.reg&7 < 2:
		if e.opsize && e.rex&8 == 0 {
			return 2
		}
		return 4
	case o == 0x8f && e.reg&7 != 0: // XOP
		return -1
	case o == 0xfe && e.reg&7 > 1, o == 0xff && e.reg&7 == 7:
		return -1
	case o == 0xc6 || o == 0xc7:
		if e.reg&7 != 0 && !(e.reg&7 == 7 && e.mod == 3 && e.rm&7 == 0) {
			return -1
		}
	}
	return n
}
