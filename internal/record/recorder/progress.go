package recorder

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/text/amount"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer"
)

// progress writes to stderr what was found, and on a terminal a live line.
type progress struct {
	quiet   bool
	live    bool
	session *tracer.Session
	dataset *output.Dataset
	ended   chan struct{}
	done    sync.WaitGroup
}

func newProgress(quiet bool, session *tracer.Session, dataset *output.Dataset) *progress {
	return &progress{
		quiet: quiet, session: session, dataset: dataset, ended: make(chan struct{}), live: !quiet && terminal.IsTerminal(os.Stderr),
	}
}

// found says what the session is attached to.
func (p *progress) found(report tracer.Report, options tracer.Options, took time.Duration) {
	if p.quiet {
		return
	}
	for _, process := range report.Processes {
		line := fmt.Sprintf("pid %d", process.PID)
		if process.Exe != "" {
			line += "  " + filepath.Base(process.Exe)
		} // else it is about to exec
		if process.PythonVersion != nil {
			line += "  Python " + *process.PythonVersion
		}
		if process.Framework != nil {
			line += "  " + *process.Framework
			if process.FrameworkVersion != nil {
				line += " " + *process.FrameworkVersion
			}
		}
		if process.Rank != nil {
			line += fmt.Sprintf("  rank %d", *process.Rank)
		}
		fmt.Fprintln(os.Stderr, printable.Text(line))
	}
	width := 0
	for _, l := range report.Libraries {
		width = max(width, len(libraryName(l)))
	}
	for _, l := range report.Libraries {
		fmt.Fprintf(os.Stderr, "  %-*s  %s\n", width, libraryName(l), describeLibrary(l))
	}
	for _, sentence := range report.Unfound {
		fmt.Fprintf(os.Stderr, "warning: %s\n", printable.Text(sentence))
	}
	if report.LeftOut != "" {
		fmt.Fprintf(os.Stderr, "warning: %s\n", report.LeftOut)
	}
	fmt.Fprintf(os.Stderr, "attached in %d ms; %s; Ctrl-C ends\n", took.Milliseconds(), describeBudget(options))
}

func libraryName(l tracer.LibraryReport) string { return printable.Text(filepath.Base(l.Path)) }

func describeLibrary(l tracer.LibraryReport) string {
	text := fmt.Sprintf("%d functions, %d probed", l.Planned, l.Attached)
	if waiting := l.Planned - l.Attached - l.Skipped; waiting > 0 {
		text += fmt.Sprintf(", %d once the job uses them", waiting)
	}
	if l.Skipped > 0 {
		text += fmt.Sprintf(", %d skipped (the probe table says why)", l.Skipped)
	}
	return text
}

func describeBudget(o tracer.Options) string {
	if o.Budget <= 0 {
		return fmt.Sprintf("level %s, no budget: every call is recorded", o.Level)
	}
	return fmt.Sprintf("level %s, at most %.3g %% of the job's time", o.Level, o.Budget*100)
}

// start begins to keep the live line up to date, until stop.
func (p *progress) start() {
	if p.live {
		p.done.Add(1)
		go p.run()
	}
}

func (p *progress) run() {
	defer p.done.Done()
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	var last uint64
	at := time.Now()
	for {
		select {
		case <-p.ended:
			return
		case now := <-ticker.C:
			stats := p.session.Stats()
			events := stats.Spans + stats.Memory
			rate := float64(events-last) / now.Sub(at).Seconds()
			line := liveLine(uint64(rate), events, lostRows(stats), written(p.dataset))
			fmt.Fprint(os.Stderr, terminal.ClearLine+terminal.Truncate(line, terminal.Columns(os.Stderr)))
			last, at = events, now
		}
	}
}

func liveLine(rate, events, lost uint64, bytes int64) string {
	return fmt.Sprintf("%s events/s   %s recorded   %s lost   %s written", amount.Count(rate), amount.Count(events), amount.Count(lost),
		amount.Bytes(bytes))
}

func written(dataset *output.Dataset) (bytes int64) {
	for _, t := range dataset.Stats() {
		bytes += t.Bytes
	}
	return bytes
}

func (p *progress) stop() {
	close(p.ended)
	p.done.Wait()
	if p.live {
		fmt.Fprint(os.Stderr, terminal.ClearLine)
	}
}

func lostRows(s tracer.Stats) (n uint64) {
	for _, lost := range s.Lost {
		n += lost
	}
	return n
}
