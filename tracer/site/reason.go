package site

import "fmt"

var conditions = [16]string{"o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g"}

var registers = [16]string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
	"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}

// name is a short name of instruction i for a person, "mov" and its like not
// told apart.
func (p *program) name(i int32) string {
	in := &p.ins[i]
	k := p.fragment(i)
	code := p.frags[k].Code[in.off : in.off+uint32(in.size)]
	switch {
	case in.nop:
		return "nop"
	case in.flow == flowReturn:
		return "ret"
	case in.flow == flowCall && p.fn.Arch == ARM64:
		return "bl"
	case in.flow == flowCall, in.flow == flowCallIndirect:
		return "call"
	case in.flow == flowJump && p.fn.Arch == ARM64:
		return "b"
	case in.flow == flowJump, in.flow == flowJumpIndirect:
		return "jmp"
	case isLandingMark(p.fn.Arch, code):
		if p.fn.Arch == ARM64 {
			return "bti"
		}
		return "endbr64"
	}
	if p.fn.Arch == ARM64 {
		switch {
		case in.flow == flowCond:
			return "conditional branch"
		case in.load == loadAddr:
			return "adr"
		}
		return "instruction"
	}
	var e encoding
	parseAMD64(code, &e)
	switch o := e.opcode; {
	case in.flow == flowCond && (e.kind == 1 || o&0xf0 == 0x70):
		return "j" + conditions[o&15]
	case e.kind == 0 && o >= 0x50 && o <= 0x57:
		return "push %" + registers[o&7|e.rex&1<<3]
	}
	return "instruction"
}

// reasonEntry says where entry site i is.
func (p *program) reasonEntry(i int32) string {
	switch i {
	case 0:
		return p.name(0) + " at the entry"
	case 1:
		return p.name(1) + " after " + article(p.name(0))
	}
	return fmt.Sprintf("%s after %d instructions", p.name(i), i)
}

func article(name string) string {
	if name == "instruction" {
		return "one instruction"
	}
	return name
}

// reasonExit says where exit site i is: which kind of instruction, and how far
// before the next return in memory, if one is near.
func (p *program) reasonExit(i int32) string {
	name := p.name(i)
	if x := p.tail[i]; x != exitNone {
		return name + " to another function"
	}
	if p.ins[i].flow == flowReturn {
		return name
	}
	for j := i + 1; j < p.first[p.fragment(i)+1] && p.ins[j].off-p.ins[i].off < 256; j++ {
		if p.ins[j].flow == flowReturn {
			return fmt.Sprintf("%s %d bytes before ret", name, p.ins[j].off-p.ins[i].off)
		}
	}
	return fmt.Sprintf("%s at +%#x", name, p.ins[i].off)
}

// isLandingMark reports whether code is endbr64, or bti on arm64.
func isLandingMark(arch Arch, code []byte) bool {
	if arch == ARM64 {
		return len(code) == 4 && code[3] == 0xd5 && code[2] == 0x03 && code[1] == 0x24 && code[0]&0x3f == 0x1f
	}
	return string(code) == "\xf3\x0f\x1e\xfa"
}
