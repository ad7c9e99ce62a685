package elf

// FileOffset is where in the file the byte at a virtual address lies; not ok
// for addresses that no PT_LOAD fills from the file (.bss, holes).
func (e *File) FileOffset(address uint64) (uint64, bool) {
	for i := range e.segments {
		s := &e.segments[i]
		if d := address - s.address; address >= s.address && d < s.fileSize {
			return s.offset + d, true
		}
	}
	return 0, false
}

// VirtualAddress is where a byte of the file is mapped, before the loader's bias.
func (e *File) VirtualAddress(fileOffset uint64) (uint64, bool) {
	for i := range e.segments {
		s := &e.segments[i]
		if d := fileOffset - s.offset; fileOffset >= s.offset && d < s.fileSize {
			return s.address + d, true
		}
	}
	return 0, false
}

// CodeAddress is VirtualAddress for code: where the segments of a file share
// its bytes, as those of patched files may, the executable one wins.
func (e *File) CodeAddress(fileOffset uint64) (uint64, bool) {
	for i := range e.segments {
		s := &e.segments[i]
		if d := fileOffset - s.offset; s.executable && fileOffset >= s.offset && d < s.fileSize {
			return s.address + d, true
		}
	}
	return e.VirtualAddress(fileOffset)
}

// CodeAt returns the size bytes at a virtual address, fewer where the file or
// the segment ends before, nil where nothing of the file is mapped. The slice
// lies in the mapped file: read it, do not write it, and not after Close.
func (e *File) CodeAt(address, size uint64) []byte {
	for i := range e.segments {
		s := &e.segments[i]
		if d := address - s.address; address >= s.address && d < s.fileSize {
			if offset := s.offset + d; offset >= s.offset {
				return e.slice(offset, min(size, s.fileSize-d))
			}
		}
	}
	return nil
}

// CodeSize is the length of what CodeAt returns.
func (e *File) CodeSize(address, size uint64) int { return len(e.CodeAt(address, size)) }

// IsCode reports an address inside an executable segment's file contents.
func (e *File) IsCode(address uint64) bool {
	for i := range e.segments {
		s := &e.segments[i]
		if s.executable && address >= s.address && address-s.address < s.fileSize {
			return true
		}
	}
	return false
}

// mapsCode reports an address inside an executable segment, also of a file
// that only has the debug information of the code.
func (e *File) mapsCode(address uint64) bool {
	for i := range e.segments {
		s := &e.segments[i]
		if s.executable && address >= s.address && address-s.address < s.memorySize {
			return true
		}
	}
	return false
}

// ReadOnlyData lists the contents that hold string constants: .rodata where
// there are section headers, else the read-only segments.
func (e *File) ReadOnlyData() [][]byte {
	if e.noConstants {
		return nil
	}
	if contents, _, ok := e.Section(".rodata"); ok {
		return [][]byte{contents}
	}
	var all [][]byte
	for i := range e.segments {
		if s := &e.segments[i]; !s.executable && !s.writable {
			all = append(all, e.slice(s.offset, s.fileSize))
		}
	}
	if len(all) == 0 { // one segment for text and data: old linkers
		for i := range e.segments {
			if s := &e.segments[i]; !s.writable {
				all = append(all, e.slice(s.offset, s.fileSize))
			}
		}
	}
	return all
}

// FirstCode is where the first executable segment begins: virtual address and
// file offset.
func (e *File) FirstCode() (address, fileOffset uint64, ok bool) {
	for i := range e.segments {
		if s := &e.segments[i]; s.executable && s.fileSize > 0 {
			return s.address, s.offset, true
		}
	}
	return 0, 0, false
}

// CodeSegment is an executable segment of the file.
type CodeSegment struct{ Offset, Address, Size uint64 }

// CodeSegments lists the executable segments with contents in the file.
func (e *File) CodeSegments() []CodeSegment {
	var code []CodeSegment
	for i := range e.segments {
		if s := &e.segments[i]; s.executable && s.fileSize > 0 {
			code = append(code, CodeSegment{s.offset, s.address, s.fileSize})
		}
	}
	return code
}
