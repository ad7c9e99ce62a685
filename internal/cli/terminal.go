package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/mattn/go-isatty"
	"golang.org/x/sys/unix"
)

// clearLine moves to the start of the line and empties it. It is no colour, so
// NO_COLOR does not concern it.
const clearLine = "\r\x1b[K"

// isTerminal reports whether a live line can be shown there.
func isTerminal(f *os.File) bool {
	return isatty.IsTerminal(f.Fd()) && os.Getenv("TERM") != "dumb"
}

// columns is the width of a terminal, 80 where it does not say.
func columns(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return 80
	}
	return int(size.Col)
}

// rows is the height of a terminal, 24 where it does not say.
func rows(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Row == 0 {
		return 24
	}
	return int(size.Row)
}

// terminalState is how a terminal was before it gave each key at once.
type terminalState struct {
	fd     int
	before unix.Termios
}

// readKeys has a terminal hand over keys as they are pressed, without showing
// them. Ctrl-C stays a signal.
func readKeys(f *os.File) (*terminalState, error) {
	t := &terminalState{fd: int(f.Fd())}
	now, err := unix.IoctlGetTermios(t.fd, unix.TCGETS)
	if err != nil {
		return nil, err
	}
	t.before = *now
	now.Lflag &^= unix.ICANON | unix.ECHO
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	return t, unix.IoctlSetTermios(t.fd, unix.TCSETS, now)
}

func (t *terminalState) restore() { _ = unix.IoctlSetTermios(t.fd, unix.TCSETS, &t.before) }

// TextStyle is how wide lines may be that are written to a file, 0 for as wide
// as they are, and whether they may have colours: on a terminal, unless
// NO_COLOR says otherwise.
func TextStyle(f *os.File) (width int, color bool) {
	if !isTerminal(f) {
		return 0, false
	}
	return columns(f), os.Getenv("NO_COLOR") == ""
}

// Seconds is a sum of time for people.
func Seconds(ns int64) string {
	switch s := float64(ns) / 1e9; {
	case s >= 100:
		return fmt.Sprintf("%.0f s", s)
	case s >= 1:
		return fmt.Sprintf("%.1f s", s)
	default:
		return fmt.Sprintf("%.1f ms", s*1e3)
	}
}

// truncate keeps a line from wrapping: a wrapped one cannot be cleared.
func truncate(line string, width int) string {
	runes := []rune(line)
	return string(runes[:min(len(runes), max(width-1, 0))])
}

// plainTable is a table without lines, for people and for grep.
func plainTable(header ...any) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Format.Header = text.FormatDefault
	t.Style().Box.PaddingLeft, t.Style().Box.PaddingRight = "", "  "
	t.AppendHeader(header)
	return t
}

// rightAlign sets the columns first to last, counted from 1, to the right.
func rightAlign(t table.Writer, first, last int) {
	var configs []table.ColumnConfig
	for n := first; n <= last; n++ {
		configs = append(configs, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(configs)
}

// render prints a table without white space at the ends of its lines.
func render(w io.Writer, t table.Writer) {
	for line := range strings.Lines(t.Render()) {
		io.WriteString(w, strings.TrimRight(line, " \n")+"\n")
	}
}
