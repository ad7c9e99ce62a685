package pickle

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Writer writes one pickle of protocol 4, value by value: of the opcodes only
// those that PyTorch's memory viewer reads. Containers are opened and closed by
// the caller. A failed write shows in Close.
type Writer struct {
	out   *bufio.Writer
	texts map[string]uint32
	memo  uint32
	open  []int // by open container: items since its mark, -1 for a dictionary
}

// mostItems are appended to a list at once, as Python's own pickler does: the viewer
// passes them to a function of JavaScript, each as an argument, of which some ten
// thousands are too many.
const mostItems = 1000

// NewWriter begins a pickle.
func NewWriter(w io.Writer) *Writer {
	p := &Writer{out: bufio.NewWriterSize(w, 1<<20), texts: map[string]uint32{}}
	p.out.Write([]byte{opProto, 4})
	return p
}

// Close ends the pickle.
func (p *Writer) Close() error {
	p.out.WriteByte(opStop)
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("writing a pickle: %w", err)
	}
	return nil
}

// value counts one that begins.
func (p *Writer) value() {
	at := len(p.open) - 1
	if at < 0 || p.open[at] < 0 {
		return
	}
	if p.open[at] == mostItems {
		p.out.Write([]byte{opAppends, opMark})
		p.open[at] = 0
	}
	p.open[at]++
}

// Dict begins a dictionary; keys and values follow in turn, then EndDict.
func (p *Writer) Dict() {
	p.value()
	p.out.Write([]byte{opEmptyDict, opMark})
	p.open = append(p.open, -1)
}

// EndDict ends a dictionary.
func (p *Writer) EndDict() { p.end(opSetItems) }

// List begins a list; its items follow, then EndList.
func (p *Writer) List() {
	p.value()
	p.out.Write([]byte{opEmptyList, opMark})
	p.open = append(p.open, 0)
}

// EndList ends a list.
func (p *Writer) EndList() { p.end(opAppends) }

func (p *Writer) end(op byte) {
	p.out.WriteByte(op)
	p.open = p.open[:len(p.open)-1]
}

// Memoize gives the value that was just written a number for Again.
func (p *Writer) Memoize() uint32 {
	p.out.WriteByte(opMemoize)
	p.memo++
	return p.memo - 1
}

// Again is a value that was memoized.
func (p *Writer) Again(n uint32) {
	p.value()
	if n < 256 {
		p.out.Write([]byte{opBinGet, byte(n)})
		return
	}
	p.out.Write(binary.LittleEndian.AppendUint32([]byte{opLongBinGet}, n))
}

// None is Python's None.
func (p *Writer) None() {
	p.value()
	p.out.WriteByte(opNone)
}

// Int is a number.
func (p *Writer) Int(n int64) {
	p.value()
	switch {
	case n >= 0 && n < 1<<8:
		p.out.Write([]byte{opBinInt1, byte(n)})
	case n >= 0 && n < 1<<16:
		p.out.Write([]byte{opBinInt2, byte(n), byte(n >> 8)})
	case n >= math.MinInt32 && n <= math.MaxInt32:
		p.out.Write(binary.LittleEndian.AppendUint32([]byte{opBinInt}, uint32(n)))
	default:
		p.out.Write(binary.LittleEndian.AppendUint64([]byte{opLong1, 8}, uint64(n)))
	}
}

// Text is a text; the same one is written once.
func (p *Writer) Text(s string) {
	if n, is := p.texts[s]; is {
		p.Again(n)
		return
	}
	p.value()
	if len(s) < 256 {
		p.out.Write([]byte{opShortBinUnicode, byte(len(s))})
	} else {
		p.out.Write(binary.LittleEndian.AppendUint32([]byte{opBinUnicode}, uint32(len(s))))
	}
	p.out.WriteString(s)
	p.texts[s] = p.Memoize()
}

// Bool is Python's True or False.
func (p *Writer) Bool(b bool) {
	p.value()
	if b {
		p.out.WriteByte(opNewTrue)
		return
	}
	p.out.WriteByte(opNewFalse)
}
