package recorder

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// patience is how long a recording waits for the unwind tables of libraries: those that were recorded before have them in the
// cache. Those of PyTorch with CUDA take some ten seconds on a busy machine, once, in which a job is not left unseen: until
// then its stacks have the Python frames, and native ones as far as frame pointers lead. They count as native_no_table.
// It counts from the command's start, so that sampling begins within a second of it.
const patience = 700 * time.Millisecond

// quietly is how long something is waited for without a word.
const quietly = time.Second

// preparing says on stderr how far the unwind tables are.
type preparing struct {
	ctx   context.Context
	out   io.Writer // nil for no progress
	began time.Time
}

func newPreparing(ctx context.Context, quiet bool) *preparing {
	p := &preparing{ctx: ctx, out: os.Stderr, began: time.Now()}
	if quiet {
		p.out = nil
	}
	return p
}

// goOn is tracer.Options.Preparing.
func (p *preparing) goOn(done, of int) bool {
	if p.ctx.Err() != nil {
		return false
	}
	if time.Since(p.began) < patience {
		return true
	}
	if p.out != nil {
		fmt.Fprintf(p.out, "sampling begins while %d of %d libraries still need unwind tables, which takes seconds, once: "+
			"until then stacks have Python frames alone\n", of-done, of)
	}
	return false
}
