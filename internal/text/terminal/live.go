package terminal

import (
	"io"
	"os"
)

// Live is the one line of a terminal on which long work shows how far it is.
type Live struct {
	out     io.Writer
	columns func() int // as wide as the terminal is now
	shown   bool
}

// NewLive shows nothing where w is no terminal.
func NewLive(w io.Writer) Live {
	if f, ok := w.(*os.File); ok && IsTerminal(f) {
		return Live{out: f, columns: func() int { return Columns(f) }}
	}
	return Live{}
}

// Shows reports whether anybody sees the line.
func (l *Live) Shows() bool { return l.out != nil }

// Show replaces the line; an empty one clears it.
func (l *Live) Show(line string) {
	if !l.Shows() || line == "" && !l.shown {
		return
	}
	io.WriteString(l.out, ClearLine+Truncate(line, l.columns()))
	l.shown = line != ""
}
