package elf

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// gotSlot is a word that the loader fills with the address of a symbol.
type gotSlot struct {
	address uint64
	symbol  uint32
}

const relocationSize = 24

// PLTTarget names the imported symbol that a call of address ends in, when
// there is a linkage stub at the address: `jmp *slot(%rip)` on x86-64,
// `adrp; ldr; br` on arm64. The stub is decoded, so that it does not matter
// whether it lies in .plt, .plt.sec or .plt.got, or whether there are section
// headers to say so.
func (e *File) PLTTarget(address uint64) (name string, ok bool) {
	if !e.IsCode(address) {
		return "", false
	}
	var slot uint64
	if e.machine == MachineARM64 {
		slot, ok = decodeStubARM64(address, e.CodeAt(address, 20))
	} else {
		slot, ok = decodeStubX86(address, e.CodeAt(address, 16))
	}
	if !ok {
		return "", false
	}
	return e.GOTTarget(slot)
}

// PLTTargetWithin names the imported symbol whose linkage stub holds the address,
// anywhere in it. Only the sections that linkers name .plt count: elsewhere the
// bytes before an address may be the end of a function that looks like a stub.
func (e *File) PLTTargetWithin(address uint64) (name string, ok bool) {
	for i := range e.sections {
		s := &e.sections[i]
		if !strings.HasPrefix(s.name, ".plt") || address-s.address >= s.size || address < s.address {
			continue
		}
		for _, size := range []uint64{8, 16} {
			start := address - (address-s.address)%size
			if name, ok := e.PLTTarget(start); ok {
				return name, true
			}
		}
	}
	return "", false
}

// GOTTarget names the symbol whose address the loader puts into the word at
// slot: what `call *slot(%rip)` of code compiled without linkage stubs calls.
func (e *File) GOTTarget(slot uint64) (name string, ok bool) {
	e.slotsOnce.Do(e.readSlots)
	i, found := slices.BinarySearchFunc(e.slots, slot, func(s gotSlot, address uint64) int {
		return cmp.Compare(s.address, address)
	})
	if !found {
		return "", false
	}
	entry := e.dynsym.entry(uint64(e.slots[i].symbol))
	if entry == nil {
		return "", false
	}
	name = e.dynsym.name(le.Uint32(entry))
	return name, name != ""
}

func (e *File) readSlots() {
	jumpSlot, globalData := uint32(7), uint32(6) // R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT
	if e.machine == MachineARM64 {
		jumpSlot, globalData = 1026, 1025
	}
	d := &e.dynamic
	for _, table := range [][]byte{
		e.CodeAt(d.pltRelocations, d.pltSize),
		e.CodeAt(d.relocations, d.relocationSize),
	} {
		for ; len(table) >= relocationSize; table = table[relocationSize:] {
			kind := le.Uint32(table[8:])
			if kind == jumpSlot || kind == globalData {
				e.slots = append(e.slots, gotSlot{le.Uint64(table), le.Uint32(table[12:])})
			}
		}
	}
	slices.SortStableFunc(e.slots, func(a, b gotSlot) int { return cmp.Compare(a.address, b.address) })
}

// decodeStubX86 returns the slot that a stub at address jumps through.
//
//	[endbr64] [bnd] jmp *disp(%rip)          ld, lld, mold, gold
//	mov disp(%rip),%r11; call|jmp retpoline  lld -z retpolineplt
func decodeStubX86(address uint64, code []byte) (slot uint64, ok bool) {
	at := uint64(0)
	if bytes.HasPrefix(code, []byte{0xf3, 0x0f, 0x1e, 0xfa}) {
		at = 4
	}
	if at < uint64(len(code)) && code[at] == 0xf2 {
		at++
	}
	rest := code[min(at, uint64(len(code))):]
	switch {
	case len(rest) >= 6 && rest[0] == 0xff && rest[1] == 0x25:
		return address + at + 6 + uint64(int64(int32(le.Uint32(rest[2:])))), true
	case len(rest) >= 8 && rest[0] == 0x4c && rest[1] == 0x8b && rest[2] == 0x1d && rest[7]&^1 == 0xe8:
		return address + at + 7 + uint64(int64(int32(le.Uint32(rest[3:])))), true
	}
	return 0, false
}

// decodeStubARM64 returns the slot that a stub at address branches through.
//
//	[bti c]; adrp x16, page; ldr x17, [x16, #n]; [add x16, x16, #n]; br x17
func decodeStubARM64(address uint64, code []byte) (slot uint64, ok bool) {
	const btiC, brX17 = 0xd503245f, 0xd61f0220
	var words []uint32
	for ; len(code) >= 4; code = code[4:] {
		words = append(words, le.Uint32(code))
	}
	if len(words) > 0 && words[0] == btiC {
		words, address = words[1:], address+4
	}
	if len(words) < 3 || words[0]&0x9f00001f != 0x90000010 || words[1]&0xffc003ff != 0xf9400211 {
		return 0, false
	}
	isAdd := words[2]&0xffc003ff == 0x91000210
	if !(words[2] == brX17 || isAdd && len(words) > 3 && words[3] == brX17) {
		return 0, false
	}
	page := int64(int32(words[0]>>5&0x7ffff<<13))>>11 | int64(words[0]>>29&3)
	return address&^0xfff + uint64(page<<12) + uint64(words[1]>>10&0xfff)*8, true
}
