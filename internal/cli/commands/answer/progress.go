package answer

import (
	"fmt"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
)

// Progress says on a terminal's one line how far long work is; elsewhere it
// says nothing.
type Progress struct {
	line terminal.Live
	last time.Time
}

// NewProgress has --quiet say nothing.
func NewProgress(c *urfave.Context) *Progress {
	if c.Command != nil && c.Bool("quiet") {
		return &Progress{}
	}
	return &Progress{line: terminal.NewLive(c.App.ErrWriter)}
}

// Say replaces the line, ten times a second at most.
func (p *Progress) Say(format string, args ...any) {
	if !p.line.Shows() || time.Since(p.last) < 100*time.Millisecond {
		return
	}
	p.last = time.Now()
	p.line.Show(fmt.Sprintf(format, args...))
}

// End clears the line.
func (p *Progress) End() { p.line.Show("") }
