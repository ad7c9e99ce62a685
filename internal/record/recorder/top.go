package recorder

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/record/confinement"
	"github.com/ebpfprof/ebpfprof/internal/record/top"
	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

const topDescription = `Samples the process and shows where its threads spend their time, without a probe in it and without a dataset. 100 % is
one CPU. Time in native code is the Python function's that called it, unless --native is given.

Keys: 1 to 4 sort by own share, total share, own time, total time; r begins anew; q or Ctrl-C ends. Where the output is no
terminal, every interval's page is printed below the last.`

// TopCommand is `ebpfprof top`.
func TopCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "top",
		Usage:       "show live where a process spends its time",
		UsageText:   "ebpfprof top --pid PID [--native] [--duration 30s]",
		Description: topDescription + "\n\n" + cli.ExitCodeHelp,
		Flags: []urfave.Flag{
			&urfave.IntFlag{Name: "pid", Aliases: []string{"p"}, Usage: "the `PID` of the process"},
			&urfave.BoolFlag{Name: "native", DisableDefaultText: true, Usage: "native and kernel functions too"},
			&urfave.BoolFlag{Name: "no-follow", DisableDefaultText: true, Usage: "leave the children of the process alone"},
			&urfave.StringFlag{Name: "frequency", Value: "99", Usage: "how often a second to look at what runs, `HZ`"},
			&urfave.DurationFlag{Name: "interval", Value: time.Second, Usage: "refresh this often"},
			&urfave.DurationFlag{Name: "duration", Aliases: []string{"d"}, DefaultText: "until the job exits, q or Ctrl-C",
				Usage: "stop after this `TIME`"},
			&urfave.IntFlag{Name: "top", DefaultText: "what fits; 20 where there is no terminal", Usage: "show the `N` hottest functions"},
		},
		Action: runTop,
	}
}

func runTop(c *urfave.Context) error {
	if err := cli.NoArguments(c); err != nil {
		return err
	}
	options, err := topOptions(c)
	if err != nil {
		return err
	}
	title, err := topTitle(options.PIDs[0])
	if err != nil {
		return err
	}
	meter := top.NewMeter(top.Options{Native: c.Bool("native"), ThreadName: process.ThreadName}, time.Now())
	session, err := tracer.Open(c.Context, options, meter)
	if err != nil {
		return err
	}
	defer session.Close()
	if err := confinement.Enter(); err != nil {
		fmt.Fprintf(os.Stderr, "ebpfprof: going on without a filter on its own system calls: %v\n", err)
	}
	meter.Reset(time.Now())
	ctx, stop := untilSignal(c.Context, nil)
	defer stop()
	if d := c.Duration("duration"); d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	ended := make(chan error, 1)
	go func() { ended <- session.Run(ctx); quit() }()
	s := newScreen(c, title)
	if err := s.open(); err != nil {
		return err
	}
	s.run(ctx, quit, meter, c.Duration("interval"))
	s.close()
	return <-ended
}

func topOptions(c *urfave.Context) (tracer.Options, error) {
	o := tracer.Options{PIDs: []int{c.Int("pid")}, Level: tracer.LevelSamples, Follow: !c.Bool("no-follow"), BufferBytes: 1 << 20}
	var err error
	switch {
	case !c.IsSet("pid"):
		return o, cli.Usagef("give the process to look at: ebpfprof top --pid PID")
	case c.Int("pid") <= 0:
		return o, cli.Usagef("--pid %d: a pid is a positive number", c.Int("pid"))
	case c.Duration("interval") < 100*time.Millisecond:
		return o, cli.Usagef("--interval %s: give a time of at least 100ms, such as 1s", c.Duration("interval"))
	case c.IsSet("duration") && c.Duration("duration") <= 0:
		return o, cli.Usagef("--duration %s: give a positive time, such as 30s", c.Duration("duration"))
	case c.IsSet("top") && c.Int("top") <= 0:
		return o, cli.Usagef("--top %d: give a positive number", c.Int("top"))
	}
	if o.Frequency, err = parseFrequency(c.String("frequency"), tracer.LevelWindow); err != nil || o.Frequency == 0 {
		return o, cli.Usagef("--frequency %s: give a number of samples a second from 1 to %d", c.String("frequency"), maxFrequency)
	}
	return o, nil
}

// topTitle says what is looked at.
func topTitle(pid int) (string, error) {
	p, err := process.Open(pid)
	if err != nil {
		return "", err
	}
	title := fmt.Sprintf("pid %d  %s", pid, p.Command)
	libraries, err := p.Libraries()
	if err != nil {
		return title, nil
	}
	if python, err := p.Python(libraries); err == nil && python != nil {
		title += "  (Python " + python.Version + ")"
	}
	return title, nil
}

// screen shows pages: one in the place of the other on a terminal, one below
// the other elsewhere.
type screen struct {
	out      *os.File
	page     top.Page
	live     bool
	terminal *terminalState
	keys     chan byte
	resized  chan os.Signal
	limit    int
}

func newScreen(c *urfave.Context, title string) *screen {
	s := &screen{out: os.Stdout, live: terminal.IsTerminal(os.Stdout), limit: c.Int("top")}
	_, color := terminal.TextStyle(s.out)
	s.page = top.Page{Title: title, Order: top.ByOwn, Functions: s.limit, Color: color}
	if !s.live && s.limit == 0 {
		s.page.Functions = 20
	}
	return s
}

const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // another screen, no cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	homeScreen  = "\x1b[H"
	clearBelow  = "\x1b[J"
	clearRest   = "\x1b[K"
)

func (s *screen) open() (err error) {
	if !s.live {
		return nil
	}
	s.resized = make(chan os.Signal, 1)
	signal.Notify(s.resized, syscall.SIGWINCH)
	if terminal.IsTerminal(os.Stdin) {
		if s.terminal, err = readKeys(os.Stdin); err != nil {
			return fmt.Errorf("reading keys from the terminal: %w", err)
		}
		s.keys = make(chan byte)
		go func() {
			var key [1]byte
			for {
				if n, err := os.Stdin.Read(key[:]); err != nil || n == 0 {
					return
				}
				s.keys <- key[0]
			}
		}()
	}
	_, err = io.WriteString(s.out, enterScreen)
	return err
}

func (s *screen) close() {
	if s.live {
		signal.Stop(s.resized)
		io.WriteString(s.out, leaveScreen)
	}
	if s.terminal != nil {
		s.terminal.restore()
	}
}

// run shows pages until the context ends. What keys change shows at once.
func (s *screen) run(ctx context.Context, quit func(), meter *top.Meter, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	view := meter.Look(time.Now())
	for {
		if s.live {
			s.show(view)
		}
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if view = meter.Look(now); !s.live {
				s.show(view)
			}
		case key := <-s.keys:
			switch {
			case key == 'q' || key == 'Q':
				quit()
			case key == 'r':
				meter.Reset(time.Now())
				view = meter.Look(time.Now())
			case key >= '1' && key <= '4':
				s.page.Order = top.Order(key - '0')
			}
		case <-s.resized:
		}
	}
}

func (s *screen) show(view top.View) {
	page := s.page
	if !s.live {
		io.WriteString(s.out, strings.Join(page.Lines(view), "\n")+"\n\n")
		return
	}
	page.Width, page.Height = terminal.Columns(s.out), terminal.Rows(s.out)
	io.WriteString(s.out, homeScreen+strings.Join(page.Lines(view), clearRest+"\n")+clearRest+"\n"+clearBelow)
}
