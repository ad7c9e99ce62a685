package cpython

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// CodeBytes is how much of a code object the checksum is made from:
// PYTHON_CODE_BYTES in bpf/python_code.h.
const CodeBytes = 160

// Bounds of what a code object may refer to.
const (
	maxName      = 1024
	maxFilename  = 4096
	maxLineTable = 256 << 10 // PyTorch's largest has 20 KiB
)

// Code is what a code object says of itself.
type Code struct {
	// Function is the qualified name since 3.11, before that the plain one.
	Function  string
	File      string // co_filename, as the job sees it
	FirstLine int
	Lines     LineTable
	// Folded is for whoever folds stacks: the label of a frame of this code, made once.
	Folded string
	// asked is what Line has said last: the same few instructions call all the time.
	asked [16]instructionLine
}

type instructionLine struct {
	instruction int32
	line        int32
	answer      lineAnswer
}

type lineAnswer uint8

const (
	neverAsked lineAnswer = iota
	lineKnown
	noLineThere
)

// InstructionUnknown is the index of an instruction that is not in its code:
// PYTHON_INSTRUCTION_UNKNOWN in bpf/stack.h.
const InstructionUnknown = -2

// Line is the line of an instruction, false where there is none. It remembers, so
// that a Code is for one goroutine, as the Resolver is that it comes from.
func (c *Code) Line(instruction int32) (int, bool) {
	if instruction <= InstructionUnknown {
		return 0, false
	}
	l := &c.asked[uint32(instruction)%uint32(len(c.asked))]
	if l.answer == neverAsked || l.instruction != instruction {
		line, known := c.Lines.Line(int(instruction))
		*l = instructionLine{instruction, clampLine(line), noLineThere}
		if known {
			l.answer = lineKnown
		}
	}
	return int(l.line), l.answer == lineKnown
}

// clampLine keeps a line that is no line's number of any file within 32 bits.
func clampLine(line int) int32 { return int32(max(math.MinInt32, min(line, math.MaxInt32))) }

// kept is how many bytes a code object takes for as long as it is kept.
func (c *Code) kept() int {
	const itself = 1 << 10 // the structure, its place in the cache, its label's header
	return itself + len(c.Function) + 2*len(c.File) + c.Lines.kept()
}

// Checksum is over the parts of a code object that do not change while it
// lives, from its first CodeBytes: never 0. bpf/python_code.h computes the same.
func (o *Offsets) Checksum(code []byte) uint32 {
	word := func(offset int) uint64 { return binary.LittleEndian.Uint64(code[offset:]) }
	number := func(offset int) uint32 { return binary.LittleEndian.Uint32(code[offset:]) }
	name, lines := word(o.CodeName), word(o.CodeLinetable)
	sum := uint32(0)
	for _, v := range []uint32{
		number(o.CodeArgcount), number(o.CodeKwonly), number(o.CodeFlags), number(o.CodeLine),
		uint32(name), uint32(name >> 32), uint32(lines), uint32(lines >> 32),
	} {
		sum = (sum ^ v) * 0x9e3779b1
		sum ^= sum >> 15
	}
	if sum == 0 {
		return 1
	}
	return sum
}

// readCode reads the code object at an address; checksum 0 accepts any. The
// errors are of the type *resolveError.
func (rt *Runtime) readCode(m memory, address uint64, checksum uint32) (*Code, error) {
	code, err := rt.codeAt(m, address, checksum)
	if errors.Is(err, ErrBudget) {
		err = &resolveError{UnresolvedBudget, err}
	}
	return code, err
}

func (rt *Runtime) codeAt(m memory, address uint64, checksum uint32) (*Code, error) {
	o := &rt.Offsets
	var b [CodeBytes]byte
	if err := m.read(address, b[:]); err != nil {
		return nil, &resolveError{UnresolvedUnreadable, err}
	}
	if rt.CodeType != 0 && binary.LittleEndian.Uint64(b[o.ObjectType:]) != rt.CodeType {
		return nil, &resolveError{UnresolvedNotCode, fmt.Errorf("what is at %#x is not a code object", address)}
	}
	if sum := o.Checksum(b[:]); checksum != 0 && sum != checksum {
		return nil, &resolveError{UnresolvedReused, fmt.Errorf("another code object is at %#x by now", address)}
	}
	word := func(offset int) uint64 { return binary.LittleEndian.Uint64(b[offset:]) }
	line := binary.LittleEndian.Uint32(b[o.CodeLine:])
	c := &Code{FirstLine: int(min(line, math.MaxInt32))}
	name := o.CodeName
	if o.CodeQualname != Absent {
		name = o.CodeQualname
	}
	var err error
	if c.Function, err = rt.text(m, word(name), maxName); err != nil {
		return nil, &resolveError{UnresolvedName, err}
	}
	if c.File, err = rt.text(m, word(o.CodeFilename), maxFilename); err != nil {
		return nil, &resolveError{UnresolvedName, err}
	}
	table, err := rt.bytes(m, word(o.CodeLinetable), maxLineTable)
	if err != nil {
		return nil, &resolveError{UnresolvedLines, err}
	}
	c.Lines = NewLineTable(rt.Version.Minor, c.FirstLine, table)
	c.Lines.mark()
	return c, nil
}
