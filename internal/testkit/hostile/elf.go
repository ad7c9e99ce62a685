// Package hostile makes files that harm a reader who believes them: for tests. The
// files lie on the disk with a few kilobytes, or are small.
package hostile

import (
	"encoding/binary"
	"fmt"
	"os"
)

// Section is a section of a made file: Contents at Offset, or a hole of Size.
type Section struct {
	Name            string
	Kind            uint32 // sh_type
	Address, Offset uint64
	Size            uint64
	Link            uint32
	Contents        []byte
}

// The kinds of sections.
const (
	Bits, Symtab, Strtab, Rela, Hash, Dynamic, Note, Dynsym = 1, 2, 3, 4, 5, 6, 7, 11
)

// File is an ELF file to be made: all of it one executable segment at address 0.
type File struct {
	Size          uint64 // beyond what is written, a hole
	Sections      []Section
	DynamicTable  []uint64 // tags and values
	EhFrameHeader uint64   // where PT_GNU_EH_FRAME is, 0 for none
	SectionCount  uint64   // what the header says; 0 is the truth
}

// Write writes the file.
func (f File) Write(path string) error {
	const headers, names, dynamic, table = 64, 0x400, 0x800, 0x1000
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	le := binary.LittleEndian
	h := make([]byte, headers)
	copy(h, "\x7fELF\x02\x01\x01")
	le.PutUint16(h[16:], 3)
	le.PutUint16(h[18:], 62)
	le.PutUint32(h[20:], 1)
	le.PutUint64(h[32:], headers)
	le.PutUint64(h[40:], table)
	le.PutUint16(h[52:], headers)
	le.PutUint16(h[54:], 56)
	le.PutUint16(h[58:], 64)
	segments := [][]uint64{{1 | 5<<32, 0, 0, 0, f.Size, f.Size, 0x1000}}
	if n := uint64(len(f.DynamicTable) * 8); n > 0 {
		segments = append(segments, []uint64{2 | 4<<32, dynamic, dynamic, dynamic, n, n, 8})
	}
	if at := f.EhFrameHeader; at != 0 {
		segments = append(segments, []uint64{0x6474e550 | 4<<32, at, at, at, f.Size - at, f.Size - at, 4})
	}
	le.PutUint16(h[56:], uint16(len(segments)))
	strings, list := []byte{0}, make([]byte, 64)
	for _, s := range append(f.Sections, Section{Name: ".shstrtab", Kind: Strtab, Offset: names, Size: 0x400}) {
		entry := make([]byte, 64)
		le.PutUint32(entry, uint32(len(strings)))
		strings = append(append(strings, s.Name...), 0)
		le.PutUint32(entry[4:], s.Kind)
		le.PutUint64(entry[8:], 2)
		le.PutUint64(entry[16:], s.Address)
		le.PutUint64(entry[24:], s.Offset)
		le.PutUint64(entry[32:], max(s.Size, uint64(len(s.Contents))))
		le.PutUint32(entry[40:], s.Link)
		list = append(list, entry...)
		if len(s.Contents) > 0 {
			if _, err := file.WriteAt(s.Contents, int64(s.Offset)); err != nil {
				return err
			}
		}
	}
	le.PutUint16(h[60:], uint16(len(list)/64))
	le.PutUint16(h[62:], uint16(len(list)/64-1))
	if f.SectionCount > 0 {
		le.PutUint16(h[60:], 0)
		le.PutUint64(list[32:], f.SectionCount)
	}
	for _, s := range segments {
		for _, v := range s {
			h = le.AppendUint64(h, v)
		}
	}
	var entries []byte
	for _, v := range f.DynamicTable {
		entries = le.AppendUint64(entries, v)
	}
	for at, b := range map[int64][]byte{0: h, names: strings, dynamic: entries, table: list} {
		if _, err := file.WriteAt(b, at); err != nil {
			return err
		}
	}
	if err := file.Truncate(int64(f.Size)); err != nil {
		return fmt.Errorf("making a file of %d bytes: %w", f.Size, err)
	}
	return file.Chmod(0o755)
}

// Symbol is an entry of a symbol table: a global function.
func Symbol(name uint32, address, size uint64) []byte {
	b := make([]byte, 8, 24)
	binary.LittleEndian.PutUint32(b, name)
	b[4], b[6] = 0x12, 1
	b = binary.LittleEndian.AppendUint64(b, address)
	return binary.LittleEndian.AppendUint64(b, size)
}

// Sparse are files of 512 GiB, or as the limit is on the file system, that take 20 KiB
// of disk: each claims one table to be all of it.
func Sparse(size uint64) map[string]File {
	const at = 0x100000
	hole := size - at
	code := func(s ...Section) File { return File{Size: size, Sections: s} }
	names := []byte("\x00_ZN2at4_ops3addE4callE\x00cuLaunchKernel\x00_dl_debug_state\x00")
	strings := Section{Name: ".strtab", Kind: Strtab, Offset: 0x4000, Address: 0x4000, Contents: names}
	return map[string]File{
		"dynsym": code(Section{Name: ".dynsym", Kind: Dynsym, Address: at, Offset: at, Size: hole, Link: 2}, strings),
		"symtab": code(Section{Name: ".symtab", Kind: Symtab, Address: at, Offset: at, Size: hole, Link: 2}, strings),
		"strings": code(Section{Name: ".symtab", Kind: Symtab, Offset: 0x5000, Contents: Symbol(at, 0x1000, 16), Link: 2},
			Section{Name: ".strtab", Kind: Strtab, Offset: 0x8000, Size: size - 0x8000}),
		"eh_frame": code(Section{Name: ".eh_frame", Kind: Bits, Address: at, Offset: at, Size: hole}),
		"note":     code(Section{Name: ".note", Kind: Note, Address: at, Offset: at, Size: hole}),
		"rodata": code(Section{Name: ".dynsym", Kind: Dynsym, Offset: 0x5000, Address: 0x5000, Contents: append(make([]byte, 24),
			Symbol(1, 0x1000, 16)...), Link: 2}, strings, Section{Name: ".rodata", Kind: Bits, Address: at, Offset: at, Size: hole}),
		"function": code(Section{Name: ".dynsym", Kind: Dynsym, Offset: 0x5000, Address: 0x5000, Contents: append(make([]byte, 24),
			Symbol(24, at, hole)...), Link: 2}, strings),
		"sections": {Size: size, SectionCount: hole / 64},
		"eh_frame_hdr": {Size: size, EhFrameHeader: 0x6000, Sections: []Section{{Name: ".x", Kind: Bits, Offset: 0x6000, Contents: []byte{1, 0x1b,
			0x03, 0x3b, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0x7f}}}},
		"gnu_hash": {Size: size, DynamicTable: []uint64{6, at, 5, 0x4000, 10, hole, 0x6ffffef5, 0x7000, 0, 0},
			Sections: []Section{{Name: ".h", Kind: Bits, Offset: 0x7000, Contents: []byte{1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 255, 255,
				255, 255, 255, 255, 255, 255, 1}}}},
		"hash": {Size: size, DynamicTable: []uint64{6, at, 5, 0x4000, 10, hole, 4, 0x7000, 0, 0},
			Sections: []Section{{Name: ".h", Kind: Bits, Offset: 0x7000, Contents: []byte{1, 0, 0, 0, 255, 255, 255, 255}}}},
		"relocations": {Size: size, DynamicTable: []uint64{23, at, 2, hole, 7, at, 8, hole, 0, 0}},
	}
}

// Labyrinth is a small library that takes long to find places for probes in:
// thousands of functions that lie in one another, of branches alone.
func Labyrinth() File {
	const text, functions, size = 0x200000, 8000, 256 << 10
	code := make([]byte, 0, functions*2+size)
	for len(code) < cap(code) {
		code = append(code, 0x75, byte(len(code)/2*37%120)) // jne
	}
	names, symbols := []byte{0}, make([]byte, 24)
	for i := range functions {
		symbols = append(symbols, Symbol(uint32(len(names)), text+uint64(2*i), size)...)
		names = fmt.Appendf(names, "_ZN2at4_ops5op%03x4callE\x00", i&0xfff)
	}
	return File{Size: text + uint64(len(code)), Sections: []Section{
		{Name: ".dynsym", Kind: Dynsym, Address: 0x8000, Offset: 0x8000, Contents: symbols, Link: 2},
		{Name: ".dynstr", Kind: Strtab, Address: 0x100000, Offset: 0x100000, Contents: names},
		{Name: ".text", Kind: Bits, Address: text, Offset: text, Contents: code},
	}}
}
