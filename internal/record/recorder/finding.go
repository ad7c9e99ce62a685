package recorder

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// findFlags name processes whose pid is not known.
func findFlags() []urfave.Flag {
	return []urfave.Flag{
		&urfave.StringFlag{Name: "command", Usage: "record the process whose command line has a match of `PATTERN`, a regular expression"},
		&urfave.StringFlag{Name: "container", Usage: "record the processes of the container `ID`, of which the beginning is enough; with " +
			"--command those of them that match"},
		&urfave.BoolFlag{Name: "wait", DisableDefaultText: true, Usage: "wait until there is a process as --command and --container ask for"},
	}
}

// processes are those that the flags of attach ask for.
func processes(c *urfave.Context) ([]int, error) {
	pids, named := c.IntSlice("pid"), c.IsSet("command") || c.IsSet("container")
	switch {
	case len(pids) > 0 && (named || c.Bool("wait")):
		return nil, cli.Usagef("--pid names the process: leave out --command, --container and --wait")
	case len(pids) == 0 && !named:
		return nil, cli.Usagef("give the process to record: ebpfprof attach --pid PID, or --command PATTERN")
	case !named:
		for _, pid := range pids {
			if pid <= 0 {
				return nil, cli.Usagef("--pid %d: a pid is a positive number", pid)
			}
		}
		return pids, nil
	}
	wanted, err := parseWanted(c)
	if err != nil {
		return nil, err
	}
	search := &search{wanted: wanted, asked: searched(c), whole: !c.IsSet("command"), find: process.Find}
	if !c.Bool("wait") {
		return search.once()
	}
	ctx, stop := untilSignal(c.Context, nil)
	defer stop()
	return search.wait(ctx, c.Bool("quiet") || c.Bool("json"))
}

func parseWanted(c *urfave.Context) (wanted process.Wanted, err error) {
	if c.IsSet("command") {
		if c.String("command") == "" {
			return wanted, cli.Usagef("--command: give a pattern, such as train.py")
		}
		if wanted.Command, err = regexp.Compile(c.String("command")); err != nil {
			return wanted, cli.Usagef("--command: %w: to match such characters as they are, write a backslash before them", err)
		}
	}
	if wanted.Container = c.String("container"); c.IsSet("container") && len(wanted.Container) < leastContainer {
		return wanted, cli.Usagef("--container %q: give at least %d characters of the container's id", wanted.Container, leastContainer)
	}
	return wanted, nil
}

// leastContainer is how many characters of a container's id name it.
const leastContainer = 3

// searched are the flags by which processes are looked for, as they were written.
func searched(c *urfave.Context) string {
	var flags []string
	for _, name := range []string{"command", "container"} {
		if c.IsSet(name) {
			flags = append(flags, fmt.Sprintf("--%s %s", name, shellWord(c.String(name))))
		}
	}
	return strings.Join(flags, " ")
}

// search looks for processes.
type search struct {
	wanted process.Wanted
	asked  string
	whole  bool // all processes of a container, not one that matches
	find   func(process.Wanted) ([]process.Found, error)
}

// once finds the processes that run now.
func (s *search) once() ([]int, error) {
	found, err := s.find(s.wanted)
	if err != nil {
		return nil, fmt.Errorf("looking for %s: %w", s.asked, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no process matches %s: --wait waits for one", s.asked)
	}
	return s.choose(found)
}

// wait looks again and again, as often as takes a twentieth of one CPU at the most.
func (s *search) wait(ctx context.Context, quiet bool) ([]int, error) {
	if !quiet {
		fmt.Fprintf(os.Stderr, "waiting for a process that matches %s\n", printable.Text(s.asked))
	}
	for {
		begun := time.Now()
		found, err := s.find(s.wanted)
		if err != nil {
			return nil, fmt.Errorf("looking for %s: %w", s.asked, err)
		}
		if len(found) > 0 {
			return s.choose(found)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: no process matched %s while ebpfprof waited", ErrNothingCaptured, s.asked)
		case <-time.After(max(leastPause, 20*time.Since(begun))):
		}
	}
}

const leastPause = 100 * time.Millisecond

// choose is the one process that was found, or those of one container; of several there is a list.
func (s *search) choose(found []process.Found) ([]int, error) {
	first := found[0].Container
	if slices.ContainsFunc(found, func(f process.Found) bool { return f.Container != first }) {
		return nil, fmt.Errorf("processes of more than one container match %s: give more of its id, or --pid\n%s", s.asked, list(found))
	}
	if len(found) > 1 && !s.whole {
		return nil, fmt.Errorf("%d processes match %s: give a pattern that one matches, or --pid\n%s", len(found), s.asked, list(found))
	}
	pids := make([]int, len(found))
	for i, f := range found {
		pids[i] = f.PID
	}
	return pids, nil
}

// mostListed processes are listed, each with so many characters of its command line.
const (
	mostListed    = 20
	listedCommand = 100
)

func list(found []process.Found) string {
	var lines []string
	for _, f := range found[:min(len(found), mostListed)] {
		line := fmt.Sprintf("%8d  %s", f.PID, shortened(printable.Text(f.Command)))
		if f.Container.ID != "" {
			line += "  in " + printable.Text(f.Container.Group)
		}
		lines = append(lines, line)
	}
	if more := len(found) - mostListed; more > 0 {
		lines = append(lines, fmt.Sprintf("          … and %d more", more))
	}
	return strings.Join(lines, "\n")
}

func shortened(command string) string {
	if runes := []rune(command); len(runes) > listedCommand {
		return string(runes[:listedCommand-1]) + "…"
	}
	return command
}
