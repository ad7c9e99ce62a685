package recorder

import (
	"fmt"
	"os"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
)

// detaching says on stderr what is waited for when the probes are taken out.
type detaching struct {
	quiet, live bool
	began       time.Time // the first word of how many are left
	from        int       // how many those were
	said        bool
}

func newDetaching(quiet bool) *detaching {
	return &detaching{quiet: quiet, live: !quiet && terminal.IsTerminal(os.Stderr)}
}

// left is tracer.Options.Detaching.
func (d *detaching) left(n int) {
	switch {
	case d.quiet || n == 0:
		return
	case d.began.IsZero():
		d.began, d.from = time.Now(), n
		return
	case time.Since(d.began) < quietly:
		return
	}
	line := detachLine(n, d.from-n, time.Since(d.began))
	switch {
	case d.live:
		fmt.Fprint(os.Stderr, terminal.ClearLine+terminal.Truncate(line, terminal.Columns(os.Stderr)))
	case !d.said:
		fmt.Fprintln(os.Stderr, line)
	}
	d.said = true
}

// detachLine: left links of probes are to be taken out, as out were in some time. On a busy machine few of them take
// long, too, so that what the kernel can do is not told from the time.
func detachLine(left, out int, in time.Duration) string {
	line := fmt.Sprintf("taking out %d links of probes one by one (before Linux 6.6 each probe is a link)", left)
	if out == 0 {
		return line
	}
	rest := in * time.Duration(left) / time.Duration(out)
	return fmt.Sprintf("%s: %d ms for each, %s more", line, in.Milliseconds()/int64(out), rest.Round(time.Second))
}

// over takes the live line away.
func (d *detaching) over() {
	if d.live && d.said {
		fmt.Fprint(os.Stderr, terminal.ClearLine)
	}
}
