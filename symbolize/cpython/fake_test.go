package cpython

import (
	"encoding/binary"
	"io"
	"unicode/utf16"
)

// fakeMemory is a job's memory as a test wants it.
type fakeMemory map[uint64][]byte

func (m fakeMemory) ReadAt(b []byte, at int64) (int, error) {
	for base, contents := range m {
		if d := uint64(at) - base; uint64(at) >= base && d+uint64(len(b)) <= uint64(len(contents)) {
			return copy(b, contents[d:]), nil
		}
	}
	return 0, io.ErrUnexpectedEOF
}

func (m fakeMemory) word(address, value uint64) {
	for base, contents := range m {
		if d := address - base; address >= base && d+8 <= uint64(len(contents)) {
			binary.LittleEndian.PutUint64(contents[d:], value)
			return
		}
	}
	panic("no such memory")
}

// text makes a str object; kind 0 is ASCII.
func (m fakeMemory) text(o *Offsets, address uint64, s string, kind int) {
	width, data := max(kind, 1), o.UnicodeCompact
	state := uint64(width)<<o.UnicodeKind | 1<<(o.UnicodeKind+3)
	if kind == 0 {
		data = o.UnicodeASCII
		state |= 1 << (o.UnicodeKind + 4)
	}
	var characters []byte
	length := 0
	for _, r := range s {
		length++
		switch width {
		case 1:
			characters = append(characters, byte(r))
		case 2:
			characters = binary.LittleEndian.AppendUint16(characters, utf16.Encode([]rune{r})[0])
		default:
			characters = binary.LittleEndian.AppendUint32(characters, uint32(r))
		}
	}
	m[address] = append(make([]byte, data), characters...)
	m.word(address+uint64(o.UnicodeLength), uint64(length))
	m.word(address+uint64(o.UnicodeState), state)
}

// code makes a code object with its names and an empty line table.
func (m fakeMemory) code(o *Offsets, address, codeType uint64, name, file string) {
	m[address] = make([]byte, CodeBytes)
	m.word(address+uint64(o.ObjectType), codeType)
	for i, at := range []int{o.CodeQualname, o.CodeName, o.CodeFilename, o.CodeLinetable} {
		if at != Absent {
			m.word(address+uint64(at), address+0x1000*uint64(i+1))
		}
	}
	m.text(o, address+0x1000, name, 0)
	m.text(o, address+0x2000, name, 0)
	m.text(o, address+0x3000, file, 0)
	m[address+0x4000] = make([]byte, o.BytesData+8)
}
