package cli

import (
	"io"
	"os"
)

// Live is where one line shows how far long work is: standard error if that is
// a terminal.
type Live struct{ shown bool }

// Show replaces the line; an empty one clears it.
func (l *Live) Show(line string) {
	if !IsTerminal(os.Stderr) || line == "" && !l.shown {
		return
	}
	io.WriteString(os.Stderr, ClearLine+Truncate(line, Columns(os.Stderr)))
	l.shown = line != ""
}
