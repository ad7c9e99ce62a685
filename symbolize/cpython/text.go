package cpython

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"
)

// errNotText: the object is no string of a kind that code objects have.
var errNotText = errors.New("not a compact string")

// Most names and line tables are no longer: one reading gets them with their header.
const (
	mostNames  = 128
	mostTables = 512
)

// text reads a str object of at most limit characters, of whatever kind:
// ASCII, Latin-1, UCS-2 or UCS-4.
func (rt *Runtime) text(m memory, address uint64, limit int) (string, error) {
	o := &rt.Offsets
	header, err := m.ahead(address, int(o.UnicodeASCII), int(o.UnicodeASCII)+mostNames)
	if err != nil {
		return "", err
	}
	length := binary.LittleEndian.Uint64(header[o.UnicodeLength:])
	state := binary.LittleEndian.Uint32(header[o.UnicodeState:]) >> o.UnicodeKind
	kind, compact, ascii := state&7, state>>3&1 == 1, state>>4&1 == 1
	if !compact || kind != 1 && kind != 2 && kind != 4 || ascii && kind != 1 || length > 1<<31 {
		return "", fmt.Errorf("reading a name at %#x: %w", address, errNotText)
	}
	data := int(o.UnicodeCompact)
	if ascii {
		data = int(o.UnicodeASCII)
	}
	size := min(int(length), limit) * int(kind)
	if data+size <= len(header) {
		return decodeText(header[data:data+size], int(kind)), nil
	}
	characters := make([]byte, size)
	if err := m.read(address+uint64(data), characters); err != nil {
		return "", err
	}
	return decodeText(characters, int(kind)), nil
}

// decodeText makes UTF-8 of characters of kind bytes each. A lone surrogate, as
// in a file name that is not UTF-8, becomes U+FFFD.
func decodeText(characters []byte, kind int) string {
	out := make([]byte, 0, len(characters)*2)
	for ; len(characters) >= kind; characters = characters[kind:] {
		var r rune
		switch kind {
		case 1:
			r = rune(characters[0])
		case 2:
			r = rune(binary.LittleEndian.Uint16(characters))
		default:
			r = rune(binary.LittleEndian.Uint32(characters))
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out)
}

// bytes reads a bytes object of at most limit bytes.
func (rt *Runtime) bytes(m memory, address uint64, limit int) ([]byte, error) {
	at := address + uint64(rt.Offsets.BytesSize)
	data := int(rt.Offsets.BytesData) - int(rt.Offsets.BytesSize)
	if data < 8 {
		return nil, fmt.Errorf("reading a table at %#x: %w", address, errNotText)
	}
	header, err := m.ahead(at, 8, data+mostTables)
	if err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint64(header)
	if size > uint64(limit) {
		return nil, fmt.Errorf("reading a table at %#x: %d bytes are too many", address, size)
	}
	if data+int(size) <= len(header) {
		return bytes.Clone(header[data : data+int(size)]), nil
	}
	b := make([]byte, size)
	return b, m.read(address+uint64(rt.Offsets.BytesData), b)
}
