package site

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// maxTable bounds the entries read of one jump table.
const maxTable = 4096

// resolveIndirect finds the targets of indirect jumps: a jump through a
// function pointer with the stack pointer back at the return address is a tail
// call; a jump through a table in read-only memory goes to its entries.
func (p *program) resolveIndirect() error {
	var pending []int32
	for i := range p.ins {
		if p.ins[i].flow == flowJumpIndirect {
			pending = append(pending, int32(i))
		}
	}
	if len(pending) == 0 {
		p.track()
		return nil
	}
	for _, i := range pending {
		if t := p.table(i); t != nil {
			p.tables[i] = t
		}
	}
	p.track()
	for _, i := range pending {
		if p.tables[i] != nil {
			continue
		}
		if !p.tailSlot(i) {
			return fmt.Errorf("%w at %#x", ErrIndirectJump, p.addr(i))
		}
		p.tail[i] = exitTailSlot
	}
	return nil
}

// tailSlot reports whether indirect jump i is a tail call through a function
// pointer: the stack pointer is back at its value at the entry, and either the
// target was loaded as a word from memory without an index, which no jump
// table's is, or the instructions before the jump have just taken the frame
// down, which no compiler does before a jump that stays in the function.
func (p *program) tailSlot(i int32) bool {
	if s := p.states[i]; !p.seen[i] || !s.spKnown || s.sp != 0 {
		return false
	}
	switch in := &p.ins[i]; in.jump {
	case jumpSlot:
		return true
	case jumpRegister:
		if def := p.definition(i, in.reg); def >= 0 && p.ins[def].load == loadSlot {
			return true
		}
		return p.tornDown(i)
	}
	return false
}

// tornDown reports whether the straight-line code before instruction i raises
// the stack pointer.
func (p *program) tornDown(i int32) bool {
	start := p.first[p.fragment(i)]
	for j := i - 1; j >= start && i-j < 32; j-- {
		switch in := &p.ins[j]; {
		case in.flow != flowNext:
			return false
		case in.sp == moveAdd && in.spDelta > 0, in.sp == moveFromFP:
			return true
		}
	}
	return false
}

// definition walks back from instruction i in straight-line code to the one
// that wrote register r, or returns -1.
func (p *program) definition(i int32, r uint8) int32 {
	start := p.first[p.fragment(i)]
	for j := i - 1; j >= start && i-j < 64; j-- {
		in := &p.ins[j]
		if in.writes>>r&1 == 1 {
			return j
		}
		if !in.goesOn() || in.flow == flowCall || in.flow == flowCallIndirect {
			return -1
		}
	}
	return -1
}

// table reads the targets of the jump-table idiom that ends in jump i, or
// returns nil. It reads on until an entry does not lead to an instruction of
// the function, so it may return targets of a table that follows: edges too
// many make a plan harder, never wrong.
func (p *program) table(i int32) []int32 {
	in := &p.ins[i]
	if p.fn.Read == nil || p.fn.Arch != AMD64 || in.jump != jumpRegister {
		return nil
	}
	add := p.definition(i, in.reg)
	if add < 0 || p.ins[add].load != loadAdd {
		return nil
	}
	word, base := in.reg, p.ins[add].base
	def := p.definition(add, word)
	if def < 0 || p.ins[def].load != loadTable {
		word, base = base, word
		def = p.definition(add, word)
		if def < 0 || p.ins[def].load != loadTable {
			return nil
		}
	}
	if p.ins[def].base != base {
		return nil
	}
	addr, ok := p.tableAddress(def, base)
	if !ok {
		return nil
	}
	var targets []int32
	var b [4]byte
	for k := uint64(0); k < maxTable; k++ {
		if !p.fn.Read(addr+4*k, b[:]) {
			break
		}
		t := p.find(addr + uint64(int64(int32(binary.LittleEndian.Uint32(b[:])))))
		if t < 0 {
			break
		}
		if !slices.Contains(targets, t) {
			targets = append(targets, t)
		}
	}
	return targets
}

// tableAddress finds the fixed address in register base at instruction i, from
// its definition in straight-line code.
func (p *program) tableAddress(i int32, base uint8) (uint64, bool) {
	if def := p.definition(i, base); def >= 0 {
		return p.ins[def].target, p.ins[def].load == loadAddr
	}
	return 0, false
}
