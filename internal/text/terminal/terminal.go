// Package terminal prints for people: tables, widths, and the one line that shows progress.
package terminal

import (
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/mattn/go-isatty"
	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// ClearLine moves to the start of the line and empties it. It is no colour, so
// NO_COLOR does not concern it.
const ClearLine = "\r\x1b[K"

// IsTerminal reports whether a live line can be shown there.
func IsTerminal(f *os.File) bool {
	return isatty.IsTerminal(f.Fd()) && os.Getenv("TERM") != "dumb"
}

// Columns is the width of a terminal, 80 where it does not say.
func Columns(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return 80
	}
	return int(size.Col)
}

// Rows is the height of a terminal, 24 where it does not say.
func Rows(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Row == 0 {
		return 24
	}
	return int(size.Row)
}

// TextStyle is how wide lines may be that are written to a file, 0 for as wide
// as they are, and whether they may have colours: on a terminal, unless
// NO_COLOR says otherwise.
func TextStyle(f *os.File) (width int, color bool) {
	if !IsTerminal(f) {
		return 0, false
	}
	return Columns(f), os.Getenv("NO_COLOR") == ""
}

// Truncate keeps a line from wrapping: a wrapped one cannot be cleared.
func Truncate(line string, width int) string {
	runes := []rune(line)
	return string(runes[:min(len(runes), max(width-1, 0))])
}

// PlainTable is a table without lines, for people and for grep.
func PlainTable(header ...any) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Format.Header = text.FormatDefault
	t.Style().Box.PaddingLeft, t.Style().Box.PaddingRight = "", "  "
	t.AppendHeader(header)
	return printableTable{t}
}

// printableTable has cells of one line, whatever a job calls its things.
type printableTable struct{ table.Writer }

// AppendRow implements table.Writer.
func (t printableTable) AppendRow(row table.Row, config ...table.RowConfig) {
	for i, cell := range row {
		if s, ok := cell.(string); ok {
			row[i] = printable.Text(s)
		}
	}
	t.Writer.AppendRow(row, config...)
}

// RightAlign sets the columns first to last, counted from 1, to the right.
func RightAlign(t table.Writer, first, last int) {
	var configs []table.ColumnConfig
	for n := first; n <= last; n++ {
		configs = append(configs, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(configs)
}

// Render prints a table without white space at the ends of its lines.
func Render(w io.Writer, t table.Writer) {
	for line := range strings.Lines(t.Render()) {
		io.WriteString(w, strings.TrimRight(line, " \n")+"\n")
	}
}
