package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	urfave "github.com/urfave/cli/v2"
)

// progressLine says on a terminal's one line how far long work is; elsewhere it
// says nothing.
type progressLine struct {
	out  *os.File
	last time.Time
	wide int
}

func newProgressLine(c *urfave.Context) *progressLine {
	p := &progressLine{}
	if f, ok := c.App.ErrWriter.(*os.File); ok && isatty.IsTerminal(f.Fd()) && !(c.Command != nil && c.Bool("quiet")) {
		p.out = f
	}
	return p
}

func (p *progressLine) say(format string, args ...any) {
	if p.out == nil || time.Since(p.last) < 100*time.Millisecond {
		return
	}
	p.last = time.Now()
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(p.out, "\r%s%s", text, strings.Repeat(" ", max(0, p.wide-len(text))))
	p.wide = len(text)
}

func (p *progressLine) end() {
	if p.out != nil && p.wide > 0 {
		fmt.Fprintf(p.out, "\r%s\r", strings.Repeat(" ", p.wide))
	}
}
