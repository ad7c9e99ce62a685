package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/analysis"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/solve"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/source"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/text"
	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/text/amount"
	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
)

const planDescription = `Plans the memory that recurs from step to step, as profile-guided optimisation does (Sekiyama et al.): requests with
the same stack, size, birth and death in three consecutive steps get fixed offsets in one region; the rest is the pool's.
What the plan would need stands beside PyTorch's caching allocator (simulated, and as recorded where it reports), no
reuse, every solver and the lower bound. Nothing is changed in the job: a plan is advice.

   ebpfprof memory plan DATASET
   ebpfprof memory plan DATASET --format json --output plan.json
   ebpfprof memory plan DATASET --format svg --output plan.svg
   ebpfprof memory plan BATCH8 BATCH16 --batch 8,16 --capacity 16GiB

Several recordings get one plan. With their batch sizes and a capacity the largest batch that would fit is estimated: by
regression of each hot block's size from two recordings or more; from one as if activations grew with the batch.`

// planCommand is `ebpfprof memory plan`.
func planCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "plan",
		Usage:       "plan the memory that recurs from step to step",
		ArgsUsage:   "DATASET…",
		Description: planDescription,
		Flags: []urfave.Flag{
			&urfave.IntFlag{Name: "pid", Usage: "only the process `PID`"},
			&urfave.DurationFlag{Name: "time", Value: 10 * time.Second, Usage: "give the solvers `TIME`"},
			&urfave.StringFlag{Name: "batch", Usage: "the batch size of each recording, as `N,…`"},
			&urfave.StringFlag{Name: "capacity", Usage: "estimate the largest batch that fits into `BYTES`"},
			&urfave.StringFlag{Name: "format", Value: "text", Usage: "text, json, parquet, svg or png"},
			&urfave.StringFlag{Name: "output", Usage: "write to `FILE` instead of standard output"},
			&urfave.BoolFlag{Name: "save", Usage: "write the tables memory_block and memory_plan into each dataset"},
			&urfave.BoolFlag{Name: "json", Usage: "the same as --format json"},
		},
		Action: runPlan,
	}
}

func runPlan(c *urfave.Context) error {
	arguments, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return cli.Mistaken(err)
	case len(arguments) == 0:
		return cli.Mistaken(errors.New("which dataset? ebpfprof memory plan DATASET"))
	case c.IsSet("capacity") && !c.IsSet("batch"):
		return cli.Mistaken(errors.New("--capacity needs --batch: the batch size of each recording"))
	case c.Duration("time") <= 0:
		return cli.Usagef("--time %v: give a time above zero, such as 10s", c.Duration("time"))
	}
	format, err := answer.Format(c, []string{"text", "json", "parquet", "svg", "png"})
	if err != nil {
		return err
	}
	batches, err := batchesOf(c.String("batch"))
	if err != nil {
		return err
	}
	capacity, err := bytesFlag(c, "capacity")
	if err != nil {
		return err
	}
	if len(arguments) > 1 && format != "text" && format != "json" {
		return cli.Usagef("--format %s takes one recording", format)
	}
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	var plans []*analysis.Plan
	for _, path := range arguments {
		plan, err := loadPlan(ctx, c, path)
		if err != nil {
			return cli.Failed(fmt.Errorf("%s: %w", path, err))
		}
		plans = append(plans, plan)
	}
	several, err := analysis.Compare(context.WithoutCancel(ctx), plans, batches, capacity)
	if err != nil {
		return cli.Failed(err)
	}
	err = answer.To(c, func(w io.Writer) error { return writePlan(w, several, format) })
	if err != nil {
		return cli.Failed(err)
	}
	return nil
}

func writePlan(w io.Writer, several *analysis.Several, format string) error {
	plan := several.Plans[0]
	switch format {
	case "json":
		if len(several.Plans) > 1 || several.WhatIf != nil {
			return answer.Indented(w, several)
		}
		return answer.Indented(w, plan)
	case "parquet":
		return plan.WriteParquet(w)
	case "svg":
		return plan.Picture().WriteSVG(w)
	case "png":
		return plan.Picture().WritePNG(w)
	}
	return answer.Text(w, func(w io.Writer) { text.Plans(w, several) })
}

// batchesOf reads 8,16.
func batchesOf(text string) (batches []float64, err error) {
	if text == "" {
		return nil, nil
	}
	for _, part := range strings.Split(text, ",") {
		n, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || !(n > 0) || n > 1e9 {
			return nil, cli.Usagef("--batch %s: give numbers above zero, such as 8,16", text)
		}
		batches = append(batches, n)
	}
	return batches, nil
}

func loadPlan(ctx context.Context, c *urfave.Context, path string) (*analysis.Plan, error) {
	m, err := analysis.Load(ctx, path, int32(c.Int("pid")))
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if len(m.Arenas) == 0 {
		return nil, source.ErrNoEvents
	}
	plan, err := planOf(ctx, c, m)
	if err == nil && c.Bool("save") {
		err = plan.Save(m)
	}
	return plan, err
}

func planOf(ctx context.Context, c *urfave.Context, m *analysis.Memory) (*analysis.Plan, error) {
	live := terminal.NewLive(c.App.ErrWriter)
	defer live.Show("")
	return m.MakePlan(ctx, m.Arenas[0], analysis.PlanOptions{Time: c.Duration("time"), Progress: func(a solve.Attempt) {
		live.Show(fmt.Sprintf("%s: %s", a.Solver, amount.Bytes(a.Peak)))
	}})
}
