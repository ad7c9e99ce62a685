package cpython

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
}

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
	return LineTable{format, firstLine, table}
}

// Line is the source line of a code unit (two bytes of bytecode), false where
// the compiler made it without one. Below zero the function has not begun: its
// first line.
func (t LineTable) Line(unit int) (int, bool) {
	if unit < 0 {
		return t.first, true
	}
	line, known := 0, false
	t.ranges(func(r lineRange) bool {
		if unit < r.start || unit >= r.end {
			return true
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
func (t LineTable) ranges(yield func(lineRange) bool) {
	switch t.format {
	case linesNotab:
		notabRanges(t.table, t.first, yield)
	case linesRanges:
		pairRanges(t.table, t.first, yield)
	default:
		locationRanges(t.table, t.first, yield)
	}
}

// notabRanges decodes pairs of a byte count and a signed line delta, both to
// apply before the code that follows (Objects/lnotab_notes.txt).
func notabRanges(table []byte, line int, yield func(lineRange) bool) {
	start, at := 0, 0
	for ; len(table) >= 2; table = table[2:] {
		at += int(table[0])
		if delta := int(int8(table[1])); delta != 0 {
			if at > start && !yield(lineRange{start / 2, at / 2, line, true}) {
				return
			}
			start, line = at, line+delta
		}
	}
	yield(lineRange{start / 2, endless, line, true})
}

// noLine marks the pairs of 3.10 that have no line.
const noLine = -128

// pairRanges decodes pairs of a byte count and a signed line delta that applies
// to just these bytes. Where there is no line the running one stays.
func pairRanges(table []byte, line int, yield func(lineRange) bool) {
	at := 0
	for ; len(table) >= 2; table = table[2:] {
		end, delta := at+int(table[0]), int(int8(table[1]))
		if delta != noLine {
			line += delta
		}
		if end > at && !yield(lineRange{at / 2, end / 2, line, delta != noLine}) {
			return
		}
		at = end
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

// locationRanges decodes entries that begin with a byte whose top bit is set
// and go on to the next of those. Where there is no line the running one stays:
// the next delta counts from it.
func locationRanges(table []byte, line int, yield func(lineRange) bool) {
	at := 0
	for len(table) > 0 {
		head, rest := table[0], table[1:]
		n := 0
		for n < len(rest) && rest[n]&0x80 == 0 {
			n++
		}
		if head&0x80 != 0 {
			kind := head >> 3 & 15
			switch {
			case kind >= locationOneLine && kind < locationNoColumn:
				line += int(kind - locationOneLine)
			case kind == locationNoColumn || kind == locationLong:
				line += signedVarint(rest[:n])
			}
			end := at + int(head&7) + 1
			if !yield(lineRange{at, end, line, kind != locationNone}) {
				return
			}
			at = end
		}
		table = rest[n:]
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
