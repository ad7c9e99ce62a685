package cpython

import "slices"

// lineFormat is how a version stores the lines of a function.
type lineFormat uint8

const (
	linesNotab     lineFormat = iota // co_lnotab, up to 3.9
	linesRanges                      // PEP 626, 3.10
	linesLocations                   // PEP 657, since 3.11
)

// LineTable is the line table of one code object, undecoded.
type LineTable struct {
	format lineFormat
	first  int // co_firstlineno
	table  []byte
	// marks are places in a long table at which decoding can begin, in the order of
	// their code units: an instruction at its end is not looked for from its beginning.
	marks []lineMark
}

// lineMark is where an entry begins, and what the entries before it add up to: the code
// units or bytes, and the line. begun is where the range of a co_lnotab begins.
type lineMark struct{ at, begun, next, line int }

// marksApart is how many bytes of a table lie between two marks.
const marksApart = 256

// NewLineTable wraps co_lnotab (up to 3.9) or co_linetable of a code object of
// Python 3.minor.
func NewLineTable(minor, firstLine int, table []byte) LineTable {
	format := linesLocations
	switch {
	case minor <= 9:
		format = linesNotab
	case minor == 10:
		format = linesRanges
	}
	return LineTable{format: format, first: firstLine, table: table}
}

// mark decodes the table once, and keeps where entries begin.
func (t *LineTable) mark() {
	if len(t.table) <= 2*marksApart {
		return
	}
	t.marks = make([]lineMark, 0, len(t.table)/marksApart+1)
	next := marksApart
	t.decode(lineMark{line: t.first}, func(before lineMark) {
		if before.at >= next {
			t.marks = append(t.marks, before)
			next = before.at + marksApart
		}
	}, func(lineRange) bool { return true })
}

// kept is how many bytes the table takes.
func (t LineTable) kept() int { return len(t.table) + 32*cap(t.marks) }

// from is the last mark before a code unit.
func (t LineTable) from(unit int) lineMark {
	of := func(m lineMark) int {
		if t.format == linesLocations {
			return m.next
		}
		return (m.begun + 1) / 2
	}
	after, _ := slices.BinarySearchFunc(t.marks, unit, func(m lineMark, unit int) int {
		if of(m) > unit {
			return 1
		}
		return -1
	})
	if after == 0 {
		return lineMark{line: t.first}
	}
	return t.marks[after-1]
}

// Line is the source line of a code unit (two bytes of bytecode), false where
// the compiler made it without one. Below zero the function has not begun: its
// first line.
func (t LineTable) Line(unit int) (int, bool) {
	if unit < 0 {
		return t.first, true
	}
	line, known := 0, false
	t.decode(t.from(unit), nil, func(r lineRange) bool {
		if unit < r.start || unit >= r.end {
			return r.start <= unit
		}
		line, known = r.line, r.known
		return false
	})
	return line, known
}

// lineRange says that the code units [start, end) are of one line, or of none.
type lineRange struct {
	start, end int
	line       int
	known      bool
}

// endless ends the last range of a table that does not say where the code ends.
const endless = int(^uint(0) >> 1)

// ranges yields the table in ascending order until yield returns false or the
// table ends, well formed or not.
func (t LineTable) ranges(yield func(lineRange) bool) { t.decode(lineMark{line: t.first}, nil, yield) }

// decode yields the ranges from a mark on; passed, if there is one, is called before each
// entry with what a mark there would be.
func (t LineTable) decode(from lineMark, passed func(lineMark), yield func(lineRange) bool) {
	if passed == nil {
		passed = func(lineMark) {}
	}
	switch t.format {
	case linesNotab:
		notabRanges(t.table, from, passed, yield)
	case linesRanges:
		pairRanges(t.table, from, passed, yield)
	default:
		locationRanges(t.table, from, passed, yield)
	}
}

// notabRanges decodes pairs of a byte count and a signed line delta, both to
// apply before the code that follows (Objects/lnotab_notes.txt).
func notabRanges(table []byte, m lineMark, passed func(lineMark), yield func(lineRange) bool) {
	for ; len(table)-m.at >= 2; m.at += 2 {
		passed(m)
		m.next += int(table[m.at])
		if delta := int(int8(table[m.at+1])); delta != 0 {
			if m.next > m.begun && !yield(lineRange{m.begun / 2, m.next / 2, m.line, true}) {
				return
			}
			m.begun, m.line = m.next, m.line+delta
		}
	}
	yield(lineRange{m.begun / 2, endless, m.line, true})
}

// noLine marks the pairs of 3.10 that have no line.
const noLine = -128

// pairRanges decodes pairs of a byte count and a signed line delta that applies
// to just these bytes. Where there is no line the running one stays.
func pairRanges(table []byte, m lineMark, passed func(lineMark), yield func(lineRange) bool) {
	for ; len(table)-m.at >= 2; m.at += 2 {
		m.begun = m.next
		passed(m)
		end, delta := m.next+int(table[m.at]), int(int8(table[m.at+1]))
		if delta != noLine {
			m.line += delta
		}
		if end > m.next && !yield(lineRange{m.next / 2, end / 2, m.line, delta != noLine}) {
			return
		}
		m.next = end
	}
}

// The kinds of an entry of the location table that say something about the
// line (Objects/locations.md); the others are on the line of the entry before.
const (
	locationOneLine  = 10 // and 11, 12: that many lines further
	locationNoColumn = 13
	locationLong     = 14
	locationNone     = 15
)

// maxLocation is more than an entry of the location table has: a byte and four numbers of
// six bytes. A longer one ends the table.
const maxLocation = 64

// locationRanges decodes entries that begin with a byte whose top bit is set
// and go on to the next of those. Where there is no line the running one stays:
// the next delta counts from it.
func locationRanges(table []byte, m lineMark, passed func(lineMark), yield func(lineRange) bool) {
	for m.at < len(table) {
		passed(m)
		head, rest := table[m.at], table[m.at+1:]
		n := 0
		for n < len(rest) && rest[n]&0x80 == 0 {
			if n++; n > maxLocation {
				return
			}
		}
		if head&0x80 != 0 {
			kind := head >> 3 & 15
			switch {
			case kind >= locationOneLine && kind < locationNoColumn:
				m.line += int(kind - locationOneLine)
			case kind == locationNoColumn || kind == locationLong:
				m.line += signedVarint(rest[:n])
			}
			end := m.next + int(head&7) + 1
			if !yield(lineRange{m.next, end, m.line, kind != locationNone}) {
				return
			}
			m.next = end
		}
		m.at += 1 + n
	}
}

// signedVarint reads six bits a byte, lowest first, while bit 6 is set; the
// lowest bit of the whole is the sign.
func signedVarint(b []byte) int {
	var v uint64
	for i, c := range b {
		if i > 10 {
			break
		}
		v |= uint64(c&63) << (6 * i)
		if c&64 == 0 {
			break
		}
	}
	if v&1 != 0 {
		return -int(v >> 1)
	}
	return int(v >> 1)
}
