package recorder

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
)

const (
	// patience is how long a recording waits for the unwind tables of libraries that
	// were never recorded; those of PyTorch with CUDA take some ten seconds on a busy
	// machine.
	patience = time.Minute
	// quietly is how long that takes without a word.
	quietly = time.Second
)

// preparing says on stderr how far the unwind tables are.
type preparing struct {
	ctx         context.Context
	quiet, live bool
	began       time.Time
	said        bool
}

func newPreparing(ctx context.Context, quiet bool) *preparing {
	return &preparing{ctx: ctx, quiet: quiet, live: !quiet && terminal.IsTerminal(os.Stderr), began: time.Now()}
}

// goOn is tracer.Options.Preparing.
func (p *preparing) goOn(done, of int) bool {
	waited := time.Since(p.began)
	if waited > quietly && !p.quiet {
		p.say(done, of)
	}
	return p.ctx.Err() == nil && waited < patience
}

func (p *preparing) say(done, of int) {
	line := fmt.Sprintf("preparing stacks: %d of %d libraries; new ones take seconds, once; Ctrl-C ends", done, of)
	switch {
	case p.live:
		fmt.Fprint(os.Stderr, terminal.ClearLine+terminal.Truncate(line, terminal.Columns(os.Stderr)))
	case !p.said:
		fmt.Fprintln(os.Stderr, line)
	}
	p.said = true
}

// over takes the live line away.
func (p *preparing) over() {
	if p.live && p.said {
		fmt.Fprint(os.Stderr, terminal.ClearLine)
	}
}
