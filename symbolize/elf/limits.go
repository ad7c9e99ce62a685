package elf

import (
	"errors"
	"fmt"
)

// An ELF file may be made to harm its reader: a header of 64 bytes can claim
// tables of half a terabyte. What is larger than the limits here is not read at
// all: the file has no probes and no names, and the reason says which limit.
// Each is several times what the largest library of PyTorch with CUDA has.
const (
	// maxFileBytes bounds what is mapped; libtorch_cuda is 2 GB, 6 with debug information.
	maxFileBytes = 16 << 30
	// maxSections: a linked file has some dozen. More are for object files.
	maxSections = 1 << 15
	// maxSymbolBytes: 5.6 million symbols; a wheel's libtorch has 390,000.
	maxSymbolBytes = 128 << 20
	// maxStringBytes: their names, 90 MB in that libtorch.
	maxStringBytes = 1 << 30
	// maxFrameBytes: .eh_frame, 30 MB in libtorch_cuda.
	maxFrameBytes = 256 << 20
	// maxIndexBytes: .eh_frame_hdr, 8 bytes a function.
	maxIndexBytes = 64 << 20
	// maxRelocationBytes: 11 million of them.
	maxRelocationBytes = 256 << 20
	// maxHashBytes: .gnu.hash and .hash.
	maxHashBytes = 64 << 20
	// maxNoteBytes and maxDynamicBytes: hundreds are usual.
	maxNoteBytes    = 1 << 20
	maxDynamicBytes = 1 << 20
	// maxConstantBytes: .rodata, which is searched for operators' schemas; 25 MB in libtorch_cpu.
	maxConstantBytes = 512 << 20

	// maxMatches bounds the symbols that a search finds, and maxMatchedBytes their
	// names: 22,000 vtables are the most there is.
	maxMatches      = 1 << 18
	maxMatchedBytes = 64 << 20
	// maxIndexed bounds the functions of a file that can be named, 16 bytes each, and
	// maxAliases how many names of one address are compared.
	maxIndexed = 1 << 21
	maxAliases = 1 << 10
)

// ErrTooLarge: a file, or a table in it, beyond what any real library has.
var ErrTooLarge = errors.New("larger than any real library's")

// ErrSparse: a table in a hole of the file. No linker leaves one there; it costs
// who made it nothing, and whoever reads it memory.
var ErrSparse = errors.New("a hole in the file")

// table is a part of the file that is read as a whole.
type table struct {
	name  string
	bytes []byte
	limit int
}

// tables lists the parts that are as large as the file says.
func (e *File) tables() []table {
	e.framesOnce.Do(e.findFrames)
	d := &e.dynamic
	list := []table{
		{"the dynamic symbols", e.dynsym.entries, maxSymbolBytes}, {"their names", e.dynsym.strings, maxStringBytes},
		{"the symbol table", e.symtab.entries, maxSymbolBytes}, {"its names", e.symtab.strings, maxStringBytes},
		{".eh_frame", e.unwind.frames, maxFrameBytes}, {".eh_frame_hdr", e.unwind.table, maxIndexBytes},
		{"the relocations", e.CodeAt(d.relocations, d.relocationSize), maxRelocationBytes},
		{"the linkage table's relocations", e.CodeAt(d.pltRelocations, d.pltSize), maxRelocationBytes},
	}
	return list
}

// smallTable is what may lie in a hole: half a megabyte of zeros does no harm.
const smallTable = 512 << 10

// checkTables refuses tables beyond the limits, and large ones that are not there.
// hole says whether most of a part of the file was never written; nil where it is no file.
func (e *File) checkTables(hole func(from, to int64) bool) error {
	for _, t := range e.tables() {
		if len(t.bytes) > t.limit {
			return fmt.Errorf("%s: %d bytes: %w", t.name, len(t.bytes), ErrTooLarge)
		}
		if e.mostlyHole(hole, t.bytes) {
			return fmt.Errorf("%s: %w", t.name, ErrSparse)
		}
	}
	for _, b := range e.ReadOnlyData() {
		e.noConstants = e.noConstants || len(b) > maxConstantBytes || e.mostlyHole(hole, b)
	}
	return nil
}

// mostlyHole reports a large part of the file of which less than half was ever
// written. A copy that leaves out pages of zeros has a few holes in the constants.
func (e *File) mostlyHole(hole func(from, to int64) bool, b []byte) bool {
	if hole == nil || len(b) < smallTable {
		return false
	}
	at := e.offsetOf(b)
	return hole(at, at+int64(len(b)))
}
