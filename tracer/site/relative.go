package site

import "encoding/binary"

// PCRelative is the address that a RIP-relative operand of x86-64 names: its
// displacement stands operand bytes into the instruction at offset i of code, which
// begins at base, and ends it.
func PCRelative(base uint64, code []byte, i, operand int) uint64 {
	displacement := int32(binary.LittleEndian.Uint32(code[i+operand:]))
	return base + uint64(i+operand+4) + uint64(int64(displacement))
}
