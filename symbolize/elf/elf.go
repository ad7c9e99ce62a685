package elf

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Errors of Open and New, for errors.Is.
var (
	// ErrNotELF: the file does not begin like an ELF file, or ends inside its header.
	ErrNotELF = errors.New("not an ELF file")
	// Err32Bit: an ELF file of the 32-bit class.
	Err32Bit = errors.New("a 32-bit ELF file")
	// ErrUnsupportedMachine: neither x86-64 nor little-endian arm64.
	ErrUnsupportedMachine = errors.New("an ELF file of a machine other than x86-64 and arm64")
	// ErrTruncated: the file got shorter while it was mapped; see Guard.
	ErrTruncated = errors.New("the file changed under the reader")
)

// Machine is e_machine.
type Machine uint16

// The machines that New accepts.
const (
	MachineX86_64 Machine = 62
	MachineARM64  Machine = 183
)

func (m Machine) String() string {
	switch m {
	case MachineX86_64:
		return "x86-64"
	case MachineARM64:
		return "arm64"
	}
	return fmt.Sprintf("machine(%d)", uint16(m))
}

// Type is e_type.
type Type uint16

// The types that a running process maps.
const (
	TypeExecutable   Type = 2 // linked at fixed addresses
	TypeSharedObject Type = 3 // a library, or a position-independent executable
)

// maxUnmapped bounds what New reads from a source that is not a file: a vDSO,
// a test's bytes.
const maxUnmapped = 1 << 30

// segment is a PT_LOAD program header.
type segment struct {
	offset, address, fileSize, memorySize uint64
	executable, writable                  bool
}

// section is a section header, its contents clipped to the file.
type section struct {
	name                  string
	kind                  uint32
	address, offset, size uint64
	link                  uint32
	allocated             bool
}

// File is one 64-bit little-endian ELF file, parsed in place. All methods are
// safe for concurrent use; none of them panics on a damaged file. Addresses
// are the virtual addresses of the file, before the loader's bias.
type File struct {
	data    []byte
	release func() error
	origin  *origin // nil of what is no file

	machine     Machine
	fileType    Type
	interpreter string
	buildID     string
	segments    []segment
	sections    []section
	dynamic     dynamic
	dynsym      symbolTable
	symtab      symbolTable
	noConstants bool // they are too large to be searched, or mostly a hole

	ehFrameHeader segmentRange
	framesOnce    sync.Once
	unwindOnce    sync.Once
	unwind        unwindIndex

	slotsOnce sync.Once
	slots     []gotSlot

	exports sync.Map // name to bool, Exports

	noReturnOnce sync.Once
	noReturn     map[uint64]struct{}
}

type segmentRange struct{ offset, address, size uint64 }

// Open maps the file at path and parses its headers. It fails with
// ErrNotELF, Err32Bit or ErrUnsupportedMachine, or with the error of open.
// A file that shrinks while it is mapped faults: wrap the use of a file that
// someone may truncate in Guard.
func Open(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening ELF file: %w", err)
	}
	defer file.Close()
	e, err := New(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}

// New parses an ELF file. An *os.File is mapped (and may be closed
// afterwards), anything else is read into memory. The errors are Open's.
func New(r io.ReaderAt) (*File, error) {
	if file, ok := r.(*os.File); ok {
		return mapELF(file, nil)
	}
	size := int64(maxUnmapped)
	if s, ok := r.(interface{ Size() int64 }); ok {
		size = min(size, s.Size())
	}
	data, err := io.ReadAll(io.NewSectionReader(r, 0, size))
	if err != nil {
		return nil, fmt.Errorf("reading ELF file: %w", err)
	}
	e, err := parseELF(data)
	if err == nil {
		err = e.checkTables(nil)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// NewWithHoles is New for a file whose holes are known: to ask for them takes a lock that whoever
// writes into the file may keep.
func NewWithHoles(file *os.File, holes []Range) (*File, error) {
	return mapELF(file, func(from, to int64) bool { return mostlyIn(holes, from, to) })
}

func mapELF(file *os.File, hole func(from, to int64) bool) (*File, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading ELF file: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() < headerSize {
		return nil, ErrNotELF
	}
	if info.Size() > maxFileBytes {
		return nil, fmt.Errorf("a file of %d bytes: %w", info.Size(), ErrTooLarge)
	}
	origin, _ := originOf(int(file.Fd())) // before a byte is read; without it nothing that is made of the file is kept
	// Shared: the kernel writes the breakpoints of a uprobe that is not limited
	// to a process into every private mapping of the file that could be made
	// executable (valid_vma in kernel/events/uprobes.c), this one too, and the
	// code read here would be another tracer's.
	data, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping ELF file: %w", err)
	}
	var e *File
	fault := Guard(func() {
		if e, err = parseELF(data); err == nil {
			if hole == nil {
				hole = holesOf(file)
			}
			err = e.checkTables(hole)
		}
	})
	if err = cmp.Or(fault, err); err != nil {
		_ = unix.Munmap(data)
		return nil, err
	}
	e.origin = origin
	e.release = keep(data)
	return e, nil
}

// Close releases the mapping. Slices that CodeAt returned must not be used
// afterwards; symbols and names may.
func (e *File) Close() error {
	if e.release == nil {
		return nil
	}
	release := e.release
	e.release, e.data = nil, nil
	return release()
}

// Guard runs use and turns what a mapped file can do to its reader into
// ErrTruncated: the fault where the file was cut short meanwhile, which would end
// the program, and an index out of range where another number was written into
// it after the first look.
func Guard(use func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		cause := recover()
		_, fault := cause.(interface{ Addr() uintptr }) // the runtime's memory fault
		_, misled := cause.(runtime.Error)
		switch {
		case cause == nil:
		case fault, cause == ErrTruncated:
			err = ErrTruncated
		case misled:
			err = fmt.Errorf("%w: %v", ErrTruncated, cause)
		default:
			panic(cause)
		}
	}()
	use()
	return nil
}

// Machine is the instruction set.
func (e *File) Machine() Machine { return e.machine }

// Type says whether the file is linked at fixed addresses.
func (e *File) Type() Type { return e.fileType }

// BuildID is the GNU build id in hexadecimal, "" where the linker wrote none.
func (e *File) BuildID() string { return e.buildID }

// Size is that of the file, in bytes.
func (e *File) Size() int64 { return int64(len(e.data)) }

// Entry is the address at which the kernel or the dynamic linker begins to run the file.
func (e *File) Entry() uint64 { return binary.LittleEndian.Uint64(e.data[24:]) }

// Interpreter is the path of the dynamic loader that PT_INTERP names, "" for a
// static program and for nearly all libraries.
func (e *File) Interpreter() string { return e.interpreter }

// IsStatic reports a program that no dynamic loader serves: it names neither a
// loader, nor libraries that it needs, nor itself as a library. The dynamic
// loader, run as a program, does the last.
func (e *File) IsStatic() bool {
	return e.interpreter == "" && !e.dynamic.needed && !e.dynamic.named
}

// Section returns the contents and address of a section, if the file has
// section headers and the section takes space in the file.
func (e *File) Section(name string) (contents []byte, address uint64, ok bool) {
	for i := range e.sections {
		s := &e.sections[i]
		if s.name == name && s.kind != sectionNoBits {
			return e.slice(s.offset, s.size), s.address, true
		}
	}
	return nil, 0, false
}

// emptied reports a section whose contents are not in the file though the
// program's are: a file of debug information, in which the program headers
// point at something else.
func (e *File) emptied(name string) bool {
	for i := range e.sections {
		if s := &e.sections[i]; s.name == name {
			return s.kind == sectionNoBits
		}
	}
	return false
}

const (
	headerSize        = 64
	programHeaderSize = 56
	sectionHeaderSize = 64

	segmentLoad    = 1
	segmentDynamic = 2
	segmentInterp  = 3
	segmentNote    = 4
	segmentEhFrame = 0x6474e550

	sectionSymtab = 2
	sectionNote   = 7
	sectionNoBits = 8
	sectionDynsym = 11
)

var le = binary.LittleEndian

func parseELF(data []byte) (*File, error) {
	if len(data) < headerSize || !bytes.HasPrefix(data, []byte("\x7fELF")) {
		return nil, ErrNotELF
	}
	switch {
	case data[4] == 1:
		return nil, Err32Bit
	case data[4] != 2:
		return nil, ErrNotELF
	case data[5] != 1:
		return nil, ErrUnsupportedMachine
	}
	e := &File{data: data, fileType: Type(le.Uint16(data[16:])), machine: Machine(le.Uint16(data[18:]))}
	if e.machine != MachineX86_64 && e.machine != MachineARM64 {
		return nil, fmt.Errorf("%w (%d)", ErrUnsupportedMachine, uint16(e.machine))
	}
	dynamicTable := e.parseSegments()
	e.parseSections()
	if !e.emptied(".dynamic") {
		e.parseDynamic(dynamicTable)
	}
	e.findSymbolTables()
	return e, nil
}

// parseSegments reads the program headers and returns the contents of PT_DYNAMIC.
func (e *File) parseSegments() (dynamicTable []byte) {
	offset, count := le.Uint64(e.data[32:]), int(le.Uint16(e.data[56:]))
	if le.Uint16(e.data[54:]) != programHeaderSize {
		return nil
	}
	table := e.slice(offset, uint64(count)*programHeaderSize)
	for ; len(table) >= programHeaderSize; table = table[programHeaderSize:] {
		flags := le.Uint32(table[4:])
		s := segment{
			offset: le.Uint64(table[8:]), address: le.Uint64(table[16:]),
			fileSize: le.Uint64(table[32:]), memorySize: le.Uint64(table[40:]),
			executable: flags&1 != 0, writable: flags&2 != 0,
		}
		switch le.Uint32(table) {
		case segmentLoad:
			e.segments = append(e.segments, s)
		case segmentDynamic:
			dynamicTable = e.slice(s.offset, min(s.fileSize, maxDynamicBytes))
		case segmentInterp:
			e.interpreter = cString(e.slice(s.offset, min(s.fileSize, 4096)))
		case segmentNote:
			e.readBuildID(e.slice(s.offset, min(s.fileSize, maxNoteBytes)))
		case segmentEhFrame:
			e.ehFrameHeader = segmentRange{s.offset, s.address, s.fileSize}
		}
	}
	return dynamicTable
}

func (e *File) parseSections() {
	offset, count := le.Uint64(e.data[40:]), uint64(le.Uint16(e.data[60:]))
	names := uint64(le.Uint16(e.data[62:]))
	if offset == 0 || le.Uint16(e.data[58:]) != sectionHeaderSize {
		return
	}
	if first := e.slice(offset, sectionHeaderSize); len(first) == sectionHeaderSize {
		// More than 65,279 sections: the counts are in the first section header.
		if count == 0 {
			count = le.Uint64(first[32:])
		}
		if names == 0xffff {
			names = uint64(le.Uint32(first[40:]))
		}
	}
	table := e.slice(offset, min(count, maxSections)*sectionHeaderSize)
	var nameTable []byte
	if names < uint64(len(table))/sectionHeaderSize {
		h := table[names*sectionHeaderSize:]
		nameTable = e.slice(le.Uint64(h[24:]), le.Uint64(h[32:]))
	}
	e.sections = make([]section, 0, len(table)/sectionHeaderSize)
	for h := table; len(h) >= sectionHeaderSize; h = h[sectionHeaderSize:] {
		s := section{
			kind: le.Uint32(h[4:]), allocated: le.Uint64(h[8:])&2 != 0,
			address: le.Uint64(h[16:]), offset: le.Uint64(h[24:]), size: le.Uint64(h[32:]),
			link: le.Uint32(h[40:]),
		}
		if at := le.Uint32(h); uint64(at) < uint64(len(nameTable)) {
			rest := nameTable[at:]
			s.name = cString(rest[:min(len(rest), 256)])
		}
		if s.kind == sectionNote && e.buildID == "" {
			e.readBuildID(e.slice(s.offset, min(s.size, maxNoteBytes)))
		}
		e.sections = append(e.sections, s)
	}
}

// readBuildID looks for the build id in a note segment or section.
func (e *File) readBuildID(notes []byte) {
	if e.buildID == "" {
		e.buildID = BuildIDOfNotes(notes)
	}
}

// BuildIDOfNotes is the NT_GNU_BUILD_ID among notes, "" where there is none.
func BuildIDOfNotes(notes []byte) string {
	const gnuBuildID = 3
	for len(notes) >= 12 {
		nameSize, size := uint64(le.Uint32(notes)), uint64(le.Uint32(notes[4:]))
		kind := le.Uint32(notes[8:])
		start := 12 + (nameSize+3)&^3
		end := start + size
		if end > uint64(len(notes)) {
			return ""
		}
		if kind == gnuBuildID && bytes.HasPrefix(notes[12:], []byte("GNU\x00")) && size <= 64 {
			return fmt.Sprintf("%x", notes[start:end])
		}
		notes = notes[min((end+3)&^3, uint64(len(notes))):]
	}
	return ""
}

// slice is data[offset:offset+size], clipped to the file.
func (e *File) slice(offset, size uint64) []byte {
	n := uint64(len(e.data))
	if offset >= n {
		return nil
	}
	size = min(size, n-offset)
	return e.data[offset : offset+size : offset+size]
}

// populateSymbols maps the symbol tables' pages in a few calls instead of a
// fault for every sixteen: 100 MB of names in a wheel's libtorch. Kernels
// before 5.14 refuse, and fault.
func (e *File) populateSymbols() {
	if e.release == nil {
		return
	}
	for _, b := range [][]byte{e.dynsym.entries, e.dynsym.strings, e.symtab.entries, e.symtab.strings} {
		if len(b) > 1<<20 {
			start := uintptr(unsafe.Pointer(&b[0])) &^ uintptr(os.Getpagesize()-1)
			length := uintptr(unsafe.Pointer(&b[0])) + uintptr(len(b)) - start
			populate(start, length)
		}
	}
}

// offsetOf is where in the file a slice of it begins.
func (e *File) offsetOf(b []byte) int64 {
	return int64(uintptr(unsafe.Pointer(&b[0])) - uintptr(unsafe.Pointer(&e.data[0])))
}

// cString is b up to its first NUL.
func cString(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
