package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/instance"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/solve"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/text"
	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/text/amount"
	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
)

const solveDescription = `FILE has a header with id, lower, upper and size, and a block a line: [lower, upper) is when it lives, size its bytes.
Each block gets an offset, so that no two that live at the same time overlap and the highest end, the peak, is low. Best
fit as Sekiyama et al. published it, first fits and others are each run once; then a search goes on until the peak is the
lower bound (the most bytes alive at once), until it fits --capacity, or until --time is over. Ctrl-C ends it with the
best plan so far. A first plan is made however short the time is. Every plan is checked before it is shown.

   ebpfprof memory solve blocks.csv
   ebpfprof memory solve blocks.csv --capacity 16GiB --json
   ebpfprof memory solve blocks.csv --fixed weights.csv --time 5s`

// solveCommand is `ebpfprof memory solve`.
func solveCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "solve",
		Usage:       "place blocks with lifetimes: the solver alone",
		ArgsUsage:   "FILE.csv",
		Description: solveDescription,
		Flags: []urfave.Flag{
			&urfave.StringFlag{Name: "capacity", Usage: "stop as soon as the plan fits into `BYTES` (a number, or one with KiB, MiB, GiB)"},
			&urfave.StringFlag{Name: "fixed", Usage: "write the offsets to `FILE` (columns id and offset)"},
			&urfave.DurationFlag{Name: "time", Value: time.Minute, Usage: "stop after `TIME`, reading and checking included"},
			&urfave.StringFlag{Name: "alignment", Value: "1", Usage: "round sizes up to multiples of `BYTES` (64 for CPU tensors, 512 for CUDA)"},
			&urfave.BoolFlag{Name: "json", Usage: "write JSON, with all offsets"},
		},
		Action: runSolve,
	}
}

func runSolve(c *urfave.Context) error {
	begun := time.Now()
	arguments, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return cli.Mistaken(err)
	case len(arguments) != 1:
		return cli.Mistaken(errors.New("which file? ebpfprof memory solve FILE.csv"))
	case c.Duration("time") <= 0:
		return cli.Usagef("--time %v: give a time above zero, such as 60s", c.Duration("time"))
	}
	problem, in, err := readProblem(c, arguments[0])
	if err != nil {
		return err
	}
	interrupted, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithDeadline(interrupted, solveUntil(begun, c.Duration("time"), len(in.Blocks)))
	defer cancel()
	live := terminal.NewLive(c.App.ErrWriter)
	bound := solve.LowerBound(problem.Blocks)
	problem.Progress = func(a solve.Attempt) {
		live.Show(fmt.Sprintf("%s: peak %s, %.2f times the lower bound, after %s", a.Solver, amount.Bytes(a.Peak),
			float64(a.Peak)/float64(max(bound, 1)), time.Since(begun).Round(time.Second)))
	}
	plan, err := solve.Solve(ctx, problem)
	live.Show("")
	if err != nil {
		return cli.Failed(fmt.Errorf("%s: %w", arguments[0], err))
	}
	if c.Bool("json") {
		err = text.SolutionJSON(c.App.Writer, problem, in, plan, time.Since(begun))
	} else {
		err = text.Solution(c.App.Writer, problem, in, plan, time.Since(begun))
	}
	if err != nil {
		return cli.Failed(err)
	}
	return nil
}

// solveUntil leaves time to check and to write what was found.
func solveUntil(begun time.Time, limit time.Duration, blocks int) time.Time {
	reserve := min(limit/4, limit/50+time.Duration(blocks)*4*time.Microsecond)
	return begun.Add(limit - reserve)
}

// readProblem reads the files and the numbers of the command line.
func readProblem(c *urfave.Context, path string) (problem solve.Problem, in *instance.Instance, err error) {
	if problem.Capacity, err = bytesFlag(c, "capacity"); err != nil {
		return problem, nil, err
	}
	alignment, err := bytesFlag(c, "alignment")
	if err != nil {
		return problem, nil, err
	}
	err = readFile(path, func(r io.Reader) error {
		in, err = instance.Read(r)
		return err
	})
	if err == nil && c.IsSet("fixed") {
		path = c.String("fixed")
		err = readFile(path, func(r io.Reader) error {
			problem.Fixed, err = in.ReadFixed(r)
			return err
		})
	}
	if err != nil {
		return problem, nil, cli.Failed(fmt.Errorf("%s: %w", path, err))
	}
	problem.Blocks, err = solve.Align(in.Blocks, alignment)
	if err == nil {
		err = solve.AlignedOffsets(problem.Fixed, alignment)
	}
	if err != nil {
		return problem, nil, cli.Failed(fmt.Errorf("%s: %w", path, err))
	}
	return problem, in, nil
}

func readFile(path string, read func(io.Reader) error) error {
	if path == "-" {
		return read(os.Stdin)
	}
	file, err := os.Open(path)
	if err != nil {
		return errors.Unwrap(err)
	}
	defer file.Close()
	return read(file)
}
