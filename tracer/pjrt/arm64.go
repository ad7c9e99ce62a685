package pjrt

import "encoding/binary"

// decodeARM64 is decodeX86 for arm64, where an address takes two instructions:
//
//	adrp x0, page ; add x0, x0, #n      the table itself
//	adrp x0, page ; ldr x0, [x0, #n]    a slot of the GOT, a variable
//	b, bl function                      where to look next
func decodeARM64(address uint64, code []byte) []reference {
	var found []reference
	pages := map[uint32]uint64{}
	for at := uint64(0); at+4 <= uint64(len(code)); at += 4 {
		w := binary.LittleEndian.Uint32(code[at:])
		to, from := w&31, w>>5&31
		switch {
		case w&0x9f000000 == 0x90000000: // adrp
			pages[to] = (address+at)&^0xfff + uint64(pageOffset(w)<<12)
		case w&0xffc00000 == 0x91000000: // add, 64 bits, immediate
			if page, ok := pages[from]; ok {
				found = append(found, reference{candidate: candidate{address: page + uint64(w>>10&0xfff)}, data: true})
			}
		case w&0xffc00000 == 0xf9400000: // ldr, 64 bits, unsigned offset
			if page, ok := pages[from]; ok {
				found = append(found, reference{candidate: candidate{page + uint64(w>>10&0xfff)*8, true}, data: true})
			}
		case w&0x7c000000 == 0x14000000: // b, bl
			target := address + at + uint64(int64(int32(w<<6))>>4)
			if target < address || target >= address+uint64(len(code)) {
				found = append(found, reference{candidate: candidate{address: target}, branch: true})
			}
		}
	}
	return found
}

// pageOffset is the signed number of pages of an adrp.
func pageOffset(w uint32) int64 {
	return int64(int32(w>>5&0x7ffff<<13))>>11 | int64(w>>29&3)
}
