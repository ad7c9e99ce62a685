package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/memplan/instance"
	"github.com/ebpfprof/ebpfprof/internal/memplan/solve"
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
			&urfave.StringFlag{Name: "fixed", Usage: "keep the offsets in `FILE` (columns id and offset)"},
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
		return usageError(err)
	case len(arguments) != 1:
		return usageError(errors.New("which file? ebpfprof memory solve FILE.csv"))
	case c.Duration("time") <= 0:
		return usageError(fmt.Errorf("--time %v: give a time above zero, such as 60s", c.Duration("time")))
	}
	problem, in, err := readProblem(c, arguments[0])
	if err != nil {
		return err
	}
	interrupted, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithDeadline(interrupted, solveUntil(begun, c.Duration("time"), len(in.Blocks)))
	defer cancel()
	var live cli.Live
	bound := solve.LowerBound(problem.Blocks)
	problem.Progress = func(a solve.Attempt) {
		live.Show(fmt.Sprintf("%s: peak %s, %.2f times the lower bound, after %s", a.Solver, cli.Bytes(a.Peak),
			float64(a.Peak)/float64(max(bound, 1)), time.Since(begun).Round(time.Second)))
	}
	plan, err := solve.Solve(ctx, problem)
	live.Show("")
	if err != nil {
		return failed(fmt.Errorf("%s: %w", arguments[0], err))
	}
	if c.Bool("json") {
		err = writeSolution(c.App.Writer, problem, in, plan, time.Since(begun))
	} else {
		err = printSolution(c.App.Writer, problem, in, plan, time.Since(begun))
	}
	if err != nil {
		return failed(err)
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
		return problem, nil, failed(fmt.Errorf("%s: %w", path, err))
	}
	problem.Blocks, err = solve.Align(in.Blocks, alignment)
	if err == nil {
		err = solve.AlignedOffsets(problem.Fixed, alignment)
	}
	if err != nil {
		return problem, nil, failed(fmt.Errorf("%s: %w", path, err))
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

// bytesFlag is a flag's number of bytes, 0 if it is not given.
func bytesFlag(c *urfave.Context, name string) (int64, error) {
	text := c.String(name)
	if text == "" && !c.IsSet(name) {
		return 0, nil
	}
	number, unit := strings.TrimSpace(text), int64(1)
	for suffix, factor := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40} {
		if before, is := strings.CutSuffix(number, suffix); is {
			number, unit = strings.TrimSpace(before), factor
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/unit {
		return 0, usageError(fmt.Errorf("--%s %s: give a number of bytes above zero, such as 1048576 or 16GiB", name, text))
	}
	return n * unit, nil
}

// solution is the JSON of `memory solve`.
type solution struct {
	LowerBound  int64      `json:"lower_bound"`
	Peak        int64      `json:"peak"`
	Gap         float64    `json:"gap"`
	Solver      string     `json:"solver"`
	Seconds     float64    `json:"seconds"`
	Feasible    *bool      `json:"feasible"`
	Optimal     bool       `json:"optimal"`
	Interrupted bool       `json:"interrupted"`
	Capacity    *int64     `json:"capacity"`
	NoReuse     int64      `json:"no_reuse"`
	Blocks      int        `json:"blocks"`
	Attempts    []attempt  `json:"attempts"`
	Offsets     []placedAt `json:"offsets"`
}

type attempt struct {
	Solver  string  `json:"solver"`
	Peak    *int64  `json:"peak"` // null where the solver did not finish
	Seconds float64 `json:"seconds"`
	Outcome string  `json:"outcome"`
}

type placedAt struct {
	ID     blockID `json:"id"`
	Offset int64   `json:"offset"`
}

// blockID is a number in JSON if it is one in the file, else a text.
type blockID string

func (id blockID) MarshalJSON() ([]byte, error) {
	if n, err := strconv.ParseInt(string(id), 10, 64); err == nil && strconv.FormatInt(n, 10) == string(id) {
		return []byte(id), nil
	}
	return json.Marshal(string(id))
}

func newSolution(problem solve.Problem, plan *solve.Plan, took time.Duration) solution {
	s := solution{
		LowerBound: plan.LowerBound, Peak: plan.Peak, Gap: plan.Gap(), Solver: plan.Solver, Seconds: took.Seconds(),
		Optimal: plan.Optimal, Interrupted: plan.Interrupted, NoReuse: solve.Total(problem.Blocks), Blocks: len(problem.Blocks),
		Attempts: []attempt{},
	}
	if problem.Capacity > 0 {
		fits := plan.Peak <= problem.Capacity
		s.Feasible, s.Capacity = &fits, &problem.Capacity
	}
	for _, a := range plan.Attempts {
		row := attempt{Solver: a.Solver, Seconds: a.Took.Seconds(), Outcome: a.Outcome}
		if a.Peak > 0 {
			row.Peak = &a.Peak
		}
		s.Attempts = append(s.Attempts, row)
	}
	return s
}

// writeSolution writes the offsets as it goes: a million of them are no tree in
// memory.
func writeSolution(w io.Writer, problem solve.Problem, in *instance.Instance, plan *solve.Plan, took time.Duration) error {
	head, err := json.MarshalIndent(newSolution(problem, plan, took), "", "  ")
	if err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	out := bufio.NewWriterSize(w, 1<<20)
	before, _, _ := strings.Cut(string(head), `"offsets": null`)
	out.WriteString(before + `"offsets": [`)
	for i, id := range in.IDs {
		name, _ := blockID(id).MarshalJSON()
		if i > 0 {
			out.WriteString(",")
		}
		fmt.Fprintf(out, "\n    {\"id\": %s, \"offset\": %d}", name, plan.Offsets[i])
	}
	out.WriteString("\n  ]\n}\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	return nil
}

func printSolution(w io.Writer, problem solve.Problem, in *instance.Instance, plan *solve.Plan, took time.Duration) error {
	fmt.Fprintf(w, "%d blocks, %s without reuse\n", len(in.Blocks), exactBytes(solve.Total(problem.Blocks)))
	if in.Empty > 0 {
		fmt.Fprintf(w, "%d of them live for no time and take no memory\n", in.Empty)
	}
	fmt.Fprintf(w, "peak %s by %s; lower bound %s, gap %.3f %%\n", exactBytes(plan.Peak), plan.Solver, exactBytes(plan.LowerBound),
		100*plan.Gap())
	switch {
	case plan.Optimal && plan.Peak > plan.LowerBound:
		fmt.Fprintln(w, "no plan has a lower peak: the search has shown it")
	case plan.Optimal:
		fmt.Fprintln(w, "no plan has a lower peak")
	case plan.Interrupted:
		fmt.Fprintf(w, "stopped after %s; a longer --time may find a lower peak\n", took.Round(time.Millisecond))
	}
	if problem.Capacity > 0 {
		verdict := "fits into"
		if plan.Peak > problem.Capacity {
			verdict = "no plan was found that fits into"
		}
		fmt.Fprintf(w, "%s %s\n", verdict, exactBytes(problem.Capacity))
	}
	fmt.Fprintln(w)
	t := cli.PlainTable("solver", "peak", "over the bound", "time", "")
	cli.RightAlign(t, 2, 4)
	for _, a := range plan.Attempts {
		if a.Peak == 0 {
			t.AppendRow([]any{a.Solver, "", "", a.Took.Round(time.Millisecond), a.Outcome})
			continue
		}
		note := ""
		if a.Outcome != "finished" {
			note = a.Outcome
		}
		t.AppendRow([]any{a.Solver, a.Peak, fmt.Sprintf("%.3f %%", 100*(float64(a.Peak)/float64(max(plan.LowerBound, 1))-1)),
			a.Took.Round(10 * time.Microsecond), note})
	}
	cli.Render(w, t)
	_, err := fmt.Fprintf(w, "\n%s in all; --json has every block's offset\n", took.Round(time.Millisecond))
	return err
}

// exactBytes is a number of bytes, and what people call it.
func exactBytes(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%d B (%s)", n, cli.Bytes(n))
}
