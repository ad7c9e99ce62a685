// Package demo is the command demo: it starts a small training job that is built in, records it from outside as any other
// job, and shows the report.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/record/user"
)

const description = `Starts a small training job that is built in, records it from outside like any other job, prints the report and
writes it as a page with its pictures, DATASET.html. The job's program stays in DATASET-job.
It needs a Python that can import torch: that of --python, of the active virtual environment, the one beside this
program, or python3.
Under sudo the job runs as the user who called it.`

// marker is the file in a dataset that an earlier demo wrote; only such a dataset is replaced.
const marker = ".demo"

// Command is `ebpfprof demo`.
func Command() *urfave.Command {
	return &urfave.Command{
		Name:        "demo",
		Usage:       "record a small built-in job and report on it",
		UsageText:   "ebpfprof demo [--python FILE] [--output DIR]",
		Description: description + "\n" + cli.ExitCodeHelp,
		Flags: []urfave.Flag{
			&urfave.StringFlag{Name: "python", Usage: "run the job with this Python, a `FILE` or a name on PATH"},
			&urfave.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "demo-dataset",
				Usage: "write the dataset to `DIR`; that of an earlier demo is replaced"},
			&urfave.DurationFlag{Name: "duration", Aliases: []string{"d"}, Value: 8 * time.Second, Usage: "record for this `TIME`"},
		},
		Action: func(c *urfave.Context) error {
			if err := cli.NoArguments(c); err != nil {
				return err
			}
			if d := c.Duration("duration"); d < time.Second || d > longest {
				return cli.Usagef("--duration %v: give a time from 1s to %v", d, longest)
			}
			ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, unix.SIGTERM)
			defer stop()
			self, err := os.Executable()
			if err != nil {
				return cli.Failed(fmt.Errorf("finding this program: %w", err))
			}
			d := &demo{self: self, output: filepath.Clean(c.String("output")), duration: c.Duration("duration"), user: user.Invoker(),
				out: c.App.Writer, candidates: pythons(self)}
			return d.run(ctx, c.String("python"))
		},
	}
}

// longest is the longest recording; the job ends by itself after it.
const longest = 5 * time.Minute

type demo struct {
	self     string // this program
	output   string
	duration time.Duration
	user     *user.User // whom the job belongs to, nil for the caller
	out      io.Writer

	candidates []string // names of Pythons to try
}

func (d *demo) run(ctx context.Context, wanted string) error {
	if err := d.replaceable(); err != nil {
		return cli.Failed(err)
	}
	python, err := d.findPython(ctx, wanted)
	if err != nil {
		return cli.Failed(err)
	}
	j, err := d.start(ctx, python)
	if err != nil {
		return cli.Failed(err)
	}
	defer j.stop()
	d.say("1. A training job runs: Python %s, PyTorch %s, pid %d, warm. Nothing in it knows of a profiler.",
		python.version, python.torch, j.pid())

	if err := d.asUser(ctx, nil, "rm", "-rf", "--", d.output); err != nil {
		return cli.Failed(fmt.Errorf("removing the dataset of an earlier demo: %w", err))
	}
	d.say("2. It is recorded from outside for %v.", d.duration)
	if err := d.ourselves(ctx, nil, "attach", "--pid", strconv.Itoa(j.pid()), "--duration", d.duration.String(),
		"--output", d.output, "--no-verdict"); err != nil {
		return err
	}
	j.stop()
	if err := d.asUser(ctx, nil, "touch", "--", filepath.Join(d.output, marker)); err != nil {
		return cli.Failed(fmt.Errorf("marking the dataset as a demo's: %w", err))
	}

	d.say("3. What makes it slow, and where the rest of its time goes.")
	if err := d.ourselves(ctx, d.user, "report", d.output, "--top", "5"); err != nil {
		return err
	}
	page := d.output + ".html"
	d.say("4. The same with its pictures: time by phase, memory, a flame graph.")
	if err := d.ourselves(ctx, d.user, "report", d.output, "--format", "html", "--output", page); err != nil {
		return err
	}
	d.say("The page is %s, the dataset %s, the job's program %s-job/train.py. More of it:", page, d.output, d.output)
	for _, more := range []string{
		"ebpfprof serve " + d.output + " --open",
		"ebpfprof stacks " + d.output,
		"ebpfprof query " + d.output + " --list-examples",
		"sudo ebpfprof attach --pid PID --duration 30s    # a job of yours",
	} {
		fmt.Fprintln(d.out, "   "+more)
	}
	return nil
}

// replaceable reports why the output cannot be written: something is there that no demo wrote.
func (d *demo) replaceable() error {
	info, err := os.Lstat(d.output)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for a dataset of an earlier demo: %w", err)
	}
	if _, err := os.Lstat(filepath.Join(d.output, marker)); !info.IsDir() || err != nil {
		return fmt.Errorf("%s exists and no demo wrote it: move it away, or name another directory with --output", d.output)
	}
	return nil
}

// asUser runs a program as the job's user: what root removes or writes in a directory that another user can write is that
// user's choice, by a link in the right moment.
func (d *demo) asUser(ctx context.Context, in io.Reader, program string, arguments ...string) error {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Stdin = in
	d.user.On(command)
	out, err := command.CombinedOutput()
	if err != nil && len(out) > 0 {
		return errors.New(strings.TrimSpace(string(out)))
	}
	return err
}

// ourselves runs a command of this program as its user would, with the output of this one.
func (d *demo) ourselves(ctx context.Context, as *user.User, arguments ...string) error {
	fmt.Fprintf(d.out, "   $ ebpfprof %s\n", strings.Join(arguments, " "))
	command := exec.CommandContext(ctx, d.self, arguments...)
	command.Stdout, command.Stderr = d.out, os.Stderr
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) } // a recording ends in order
	as.On(command)
	err := command.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return cli.WithCode(max(exit.ExitCode(), cli.ExitFailed), fmt.Errorf("ebpfprof %s failed", arguments[0]))
	}
	if err != nil {
		return cli.Failed(fmt.Errorf("running ebpfprof %s: %w", arguments[0], err))
	}
	return nil
}

func (d *demo) say(format string, arguments ...any) {
	fmt.Fprintf(d.out, "\n"+format+"\n", arguments...)
}
