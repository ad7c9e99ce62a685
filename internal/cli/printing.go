package cli

import (
	"io"
	"os"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Bytes is a number of bytes for people.
func Bytes(n int64) string { return bytesText(n) }

// PlainTable is a table without lines, for people and for grep.
func PlainTable(header ...any) table.Writer { return plainTable(header...) }

// RightAlign sets the columns first to last of a table, counted from 1, to the
// right.
func RightAlign(t table.Writer, first, last int) { rightAlign(t, first, last) }

// Render prints a table without white space at the ends of its lines.
func Render(w io.Writer, t table.Writer) { render(w, t) }

// Live is where one line shows how far long work is: standard error if that is
// a terminal. Show replaces the line, and an empty one clears it.
type Live struct{ shown bool }

// Show replaces the line.
func (l *Live) Show(line string) {
	if !isTerminal(os.Stderr) || line == "" && !l.shown {
		return
	}
	io.WriteString(os.Stderr, clearLine+truncate(line, columns(os.Stderr)))
	l.shown = line != ""
}
