// Package pickle reads and writes Python pickles that hold nothing but data:
// None, booleans, numbers, texts, bytes, lists, tuples and dictionaries. A pickle
// that would import or call anything is refused. It owns the opcodes.
package pickle

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

var (
	// ErrNotData is returned for a pickle that would import or call something.
	ErrNotData = errors.New("the pickle is a program, not data")
	// ErrDamaged is returned for a pickle that ends early or makes no sense.
	ErrDamaged = errors.New("the pickle is damaged")
	// ErrTooLarge is returned for a pickle beyond Limits.
	ErrTooLarge = errors.New("the pickle is larger than is accepted")
)

// Limits are how much Read takes. Sizes that a pickle merely claims cost nothing.
type Limits struct {
	Objects int64 // values made
	Bytes   int64 // of the pickle
	Room    *Room // for the values; NewRoom if nil
}

// DefaultLimits are far above what a snapshot of millions of events has.
var DefaultLimits = Limits{Objects: 2_000_000_000, Bytes: 16 << 30}

// List is a Python list. It is a pointer in values, since pickles share lists.
type List struct{ Items []any }

// Tuple is a Python tuple.
type Tuple []any

// Dict is a Python dictionary in the order of its items.
type Dict struct{ Keys, Values []any }

// Get is the last value of a text key.
func (d *Dict) Get(key string) any {
	for i := len(d.Keys) - 1; i >= 0; i-- {
		if k, is := d.Keys[i].(string); is && k == key {
			return d.Values[i]
		}
	}
	return nil
}

type mark struct{}

// orderedDict is collections.OrderedDict itself, the only callable that is known: called without arguments it
// makes a dictionary, and a Dict has an order.
type orderedDict struct{}

// reader is a pickle machine.
type reader struct {
	in      *bufio.Reader
	limits  Limits
	taken   int64
	objects int64
	stack   []any
	memo    []any             // slots in the order in which they are filled, as writers do
	sparse  map[int64]any     // other slots
	texts   map[string]string // equal texts are one
}

// Read reads one pickle.
func Read(r io.Reader, limits Limits) (any, error) { return newReader(r, limits).read() }

// ReadCut is Read; of a pickle that ends early it returns the entries before, with cut true: the last entries may
// lack members.
func ReadCut(r io.Reader, limits Limits) (v any, cut bool, err error) {
	p := newReader(r, limits)
	if v, err = p.read(); !errors.Is(err, errEarly) {
		return v, false, err
	}
	if v = p.closed(); v == nil {
		return nil, false, err
	}
	return v, true, nil
}

func newReader(r io.Reader, limits Limits) *reader {
	if limits.Room == nil {
		limits.Room = NewRoom()
	}
	return &reader{in: bufio.NewReaderSize(r, 1<<20), limits: limits, sparse: map[int64]any{}, texts: map[string]string{}}
}

// errEarly is an ErrDamaged of a pickle that is not whole.
var errEarly = fmt.Errorf("%w: it ends early, was it cut off?", ErrDamaged)

// ended is why nothing more could be read: the reader below refused it, or the pickle is cut.
func (p *reader) ended(err error) error {
	if errors.Is(err, ErrTooLarge) {
		return fmt.Errorf("reading a pickle: %w", err)
	}
	return p.early()
}

func (p *reader) early() error {
	return fmt.Errorf("reading a pickle: byte %d: %w", p.taken, errEarly)
}

// closed puts what is on the stack of a cut pickle into the lists and dictionaries that it was for, and
// returns the outermost.
func (p *reader) closed() any {
	for len(p.stack) > 0 {
		items, err := p.toMark()
		if err != nil {
			return outermost(p.stack)
		}
		items = slices.Clone(items)
		if len(p.stack) == 0 {
			return outermost(items)
		}
		switch p.stack[len(p.stack)-1].(type) {
		case *List:
			_ = p.extend(items)
		case *Dict:
			_ = p.set(items[:len(items)&^1])
		}
	}
	return nil
}

func outermost(stack []any) any {
	for _, v := range stack {
		switch v.(type) {
		case *List, *Dict:
			return v
		}
	}
	return nil
}

func (p *reader) read() (any, error) {
	for {
		op, err := p.in.ReadByte()
		if err != nil {
			return nil, p.ended(err)
		}
		p.taken++
		if op == opStop {
			if len(p.stack) != 1 {
				return nil, p.damaged("it ends with %d values", len(p.stack))
			}
			if _, is := p.stack[0].(mark); is {
				return nil, p.damaged("it ends with a mark")
			}
			return p.stack[0], nil
		}
		if err := p.step(op); err != nil {
			return nil, err
		}
		if p.objects > p.limits.Objects || p.taken > p.limits.Bytes {
			return nil, fmt.Errorf("reading a pickle: %w", ErrTooLarge)
		}
		if err := p.limits.Room.Step(); err != nil {
			return nil, fmt.Errorf("reading a pickle: %w", err)
		}
	}
}

func (p *reader) damaged(format string, values ...any) error {
	return fmt.Errorf("reading a pickle: byte %d: %w: %s", p.taken, ErrDamaged, fmt.Sprintf(format, values...))
}

func (p *reader) push(v any) error {
	p.objects++
	p.stack = append(p.stack, v)
	return nil
}

func (p *reader) step(op byte) error {
	switch op {
	case opGlobal, opStackGlobal, opReduce:
		if is, err := p.ordered(op); is || err != nil {
			return err
		}
	}
	if name := programs[op]; name != "" {
		return fmt.Errorf("reading a pickle: byte %d: %w: it has %s", p.taken, ErrNotData, name)
	}
	switch op {
	case opProto:
		_, err := p.bytes(1)
		return err
	case opFrame:
		_, err := p.bytes(8)
		return err
	case opMark:
		p.stack = append(p.stack, mark{})
		return nil
	case opNone:
		return p.push(nil)
	case opNewTrue:
		return p.push(true)
	case opNewFalse:
		return p.push(false)
	case opEmptyList:
		return p.push(&List{})
	case opEmptyDict:
		return p.push(&Dict{})
	case opEmptyTuple:
		return p.push(Tuple(nil))
	case opBinInt, opBinInt1, opBinInt2, opLong1, opInt, opLong, opFloat, opBinFloat:
		return p.number(op)
	case opShortBinUnicode, opBinUnicode, opBinUnicode8, opUnicode, opShortBinBytes, opBinBytes:
		return p.text(op)
	case opMemoize, opBinPut, opLongBinPut, opPut, opBinGet, opLongBinGet, opGet:
		return p.memoize(op)
	}
	return p.collect(op)
}

// ordered takes opcodes that make a collections.OrderedDict.
func (p *reader) ordered(op byte) (is bool, err error) {
	n := len(p.stack)
	switch op {
	case opGlobal:
		const name = "collections\nOrderedDict\n"
		if head, _ := p.in.Peek(len(name)); string(head) == name {
			_, err := p.in.Discard(len(name))
			p.taken += int64(len(name))
			return true, errors.Join(err, p.push(orderedDict{}))
		}
	case opStackGlobal:
		if n >= 2 && p.stack[n-2] == "collections" && p.stack[n-1] == "OrderedDict" {
			p.stack = p.stack[:n-2]
			return true, p.push(orderedDict{})
		}
	case opReduce:
		if n < 2 {
			return false, nil
		}
		arguments, isTuple := p.stack[n-1].(Tuple)
		if _, known := p.stack[n-2].(orderedDict); known && isTuple && len(arguments) == 0 {
			p.stack = p.stack[:n-2]
			return true, p.push(&Dict{})
		}
	}
	return false, nil
}

// bytes are the next n, at most 8.
func (p *reader) bytes(n int) ([]byte, error) {
	var b [8]byte
	if _, err := io.ReadFull(p.in, b[:n]); err != nil {
		return nil, p.ended(err)
	}
	p.taken += int64(n)
	return b[:n], nil
}

// unsigned is a little-endian number of n bytes.
func (p *reader) unsigned(n int) (int64, error) {
	b, err := p.bytes(n)
	if err != nil {
		return 0, err
	}
	var eight [8]byte
	copy(eight[:], b)
	v := binary.LittleEndian.Uint64(eight[:])
	if v > math.MaxInt64 {
		return 0, p.damaged("a length of %d", v)
	}
	return int64(v), nil
}

func (p *reader) line() (string, error) {
	const longest = 4096
	text, err := p.in.ReadSlice('\n')
	if err != nil || len(text) > longest {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return "", p.early()
		}
		return "", p.damaged("a line without end")
	}
	p.taken += int64(len(text))
	return strings.TrimSuffix(string(text), "\n"), nil
}

func (p *reader) number(op byte) error {
	switch op {
	case opBinInt:
		b, err := p.bytes(4)
		if err != nil {
			return err
		}
		return p.push(int64(int32(binary.LittleEndian.Uint32(b))))
	case opBinInt1, opBinInt2:
		width := 1
		if op == opBinInt2 {
			width = 2
		}
		n, err := p.unsigned(width)
		if err != nil {
			return err
		}
		return p.push(n)
	case opLong1:
		return p.long()
	case opBinFloat:
		b, err := p.bytes(8)
		if err != nil {
			return err
		}
		return p.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
	}
	text, err := p.line()
	if err != nil {
		return err
	}
	switch {
	case op == opInt && (text == "00" || text == "01"):
		return p.push(text == "01")
	case op == opFloat:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return p.damaged("a number %.20q", text)
		}
		return p.push(f)
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(text, "L"), 10, 64)
	if err != nil {
		return p.damaged("a number %.20q", text)
	}
	return p.push(n)
}

// long is a number of up to 8 bytes, or one of 9 whose last is the sign of an
// address with its highest bit set.
func (p *reader) long() error {
	n, err := p.unsigned(1)
	if err != nil {
		return err
	}
	if n > 9 {
		return p.damaged("a number of %d bytes", n)
	}
	b, err := p.bytes(int(min(n, 8)))
	if err != nil {
		return err
	}
	var eight [8]byte
	if len(b) > 0 && b[len(b)-1]&0x80 != 0 && n < 9 {
		for i := range eight {
			eight[i] = 0xff
		}
	}
	copy(eight[:], b)
	if n == 9 {
		if _, err := p.bytes(1); err != nil {
			return err
		}
	}
	return p.push(int64(binary.LittleEndian.Uint64(eight[:])))
}

func (p *reader) text(op byte) error {
	var length int64
	var err error
	switch op {
	case opShortBinUnicode, opShortBinBytes:
		length, err = p.unsigned(1)
	case opBinUnicode, opBinBytes:
		length, err = p.unsigned(4)
	case opBinUnicode8:
		length, err = p.unsigned(8)
	case opUnicode:
		var text string
		if text, err = p.line(); err == nil {
			return p.push(p.once(text))
		}
	}
	if err != nil {
		return err
	}
	if length > p.limits.Bytes-p.taken {
		return fmt.Errorf("reading a pickle: %w", ErrTooLarge)
	}
	// Read in pieces: a length that is a lie ends with the file, not the memory.
	var text strings.Builder
	if n, err := io.CopyN(&text, p.in, length); err != nil || n != length {
		return p.ended(err)
	}
	p.taken += length
	if op == opShortBinBytes || op == opBinBytes {
		return p.push([]byte(text.String()))
	}
	return p.push(p.once(text.String()))
}

func (p *reader) once(text string) string {
	if known, is := p.texts[text]; is {
		return known
	}
	if len(p.texts) < 1<<20 {
		p.texts[text] = text
	}
	return text
}

func (p *reader) memoize(op byte) error {
	var slot int64
	var err error
	switch op {
	case opMemoize:
		slot = int64(len(p.memo) + len(p.sparse))
	case opBinPut, opBinGet:
		slot, err = p.unsigned(1)
	case opLongBinPut, opLongBinGet:
		slot, err = p.unsigned(4)
	default:
		var text string
		if text, err = p.line(); err == nil {
			if slot, err = strconv.ParseInt(text, 10, 64); err != nil {
				err = p.damaged("a memo slot %.20q", text)
			}
		}
	}
	if err != nil {
		return err
	}
	if op == opBinGet || op == opLongBinGet || op == opGet {
		if slot >= 0 && slot < int64(len(p.memo)) {
			return p.push(p.memo[slot])
		}
		v, is := p.sparse[slot]
		if !is {
			return p.damaged("memo slot %d is empty", slot)
		}
		return p.push(v)
	}
	if len(p.stack) == 0 {
		return p.damaged("nothing to memoize")
	}
	switch last := p.stack[len(p.stack)-1]; {
	case slot == int64(len(p.memo)):
		p.memo = append(p.memo, last)
	case slot >= 0 && slot < int64(len(p.memo)):
		p.memo[slot] = last
	default:
		p.sparse[slot] = last
	}
	return nil
}

// pop takes the last value.
func (p *reader) pop() (any, error) {
	if len(p.stack) == 0 {
		return nil, p.damaged("a value is missing")
	}
	v := p.stack[len(p.stack)-1]
	if _, is := v.(mark); is {
		return nil, p.damaged("a value is missing")
	}
	p.stack = p.stack[:len(p.stack)-1]
	return v, nil
}

// toMark takes the values above the last mark, and the mark. They are valid until
// the next push.
func (p *reader) toMark() ([]any, error) {
	for i := len(p.stack) - 1; i >= 0; i-- {
		if _, is := p.stack[i].(mark); is {
			items := p.stack[i+1:]
			p.stack = p.stack[:i]
			return items, nil
		}
	}
	return nil, p.damaged("a mark is missing")
}

func (p *reader) collect(op byte) error {
	switch op {
	case opPop:
		_, err := p.pop()
		return err
	case opTuple1, opTuple2, opTuple3:
		n := int(op-opTuple1) + 1
		t := make(Tuple, n)
		for i := n - 1; i >= 0; i-- {
			v, err := p.pop()
			if err != nil {
				return err
			}
			t[i] = v
		}
		return p.push(t)
	case opAppend:
		v, err := p.pop()
		if err != nil {
			return err
		}
		return p.extend([]any{v})
	case opSetItem:
		v, err := p.pop()
		if err != nil {
			return err
		}
		k, err := p.pop()
		if err != nil {
			return err
		}
		return p.set([]any{k, v})
	}
	switch op {
	case opAppends, opSetItems, opTuple, opList, opDict, opPopMark:
	default:
		return p.damaged("an unknown opcode 0x%02x", op)
	}
	items, err := p.toMark()
	if err != nil {
		return err
	}
	switch op {
	case opAppends:
		return p.extend(items)
	case opSetItems:
		return p.set(items)
	case opTuple:
		return p.push(Tuple(slices.Clone(items)))
	case opList:
		return p.push(&List{slices.Clone(items)})
	case opDict:
		items = slices.Clone(items)
		if err := p.push(&Dict{}); err != nil {
			return err
		}
		return p.set(items)
	}
	return nil
}

func (p *reader) extend(items []any) error {
	if len(p.stack) > 0 {
		if l, is := p.stack[len(p.stack)-1].(*List); is {
			l.Items = append(l.Items, items...)
			return nil
		}
	}
	return p.damaged("what is appended to is no list")
}

func (p *reader) set(items []any) error {
	if len(p.stack) > 0 && len(items)%2 == 0 {
		if d, is := p.stack[len(p.stack)-1].(*Dict); is {
			if d.Keys == nil {
				room := make([]any, len(items))
				d.Keys, d.Values = room[:0:len(items)/2], room[len(items)/2:len(items)/2]
			}
			for i := 0; i < len(items); i += 2 {
				d.Keys, d.Values = append(d.Keys, items[i]), append(d.Values, items[i+1])
			}
			return nil
		}
	}
	return p.damaged("what is set into is no dictionary")
}
