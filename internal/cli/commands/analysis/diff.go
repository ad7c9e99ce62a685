package analysis

import (
	"context"
	"errors"
	"fmt"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/answer/diff"
	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

const diffDescription = `Reports whether a step takes longer, less, or as long as before, or that the recordings cannot decide it; then whether
the two are comparable, and what changed: phases, operators, kernels and their classes, lines. Exit codes: 0 neutral or
improvement, 10 regression, 12 inconclusive.

   ebpfprof diff before.dataset after.dataset --fail-on 3%`

// DiffCommand is `ebpfprof diff`.
func DiffCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "diff",
		Usage:       "compare two recordings of a job",
		ArgsUsage:   "BEFORE AFTER",
		Description: diffDescription,
		Flags: []urfave.Flag{
			&urfave.StringFlag{Name: "fail-on", Value: "3%", Usage: "a step that is `SHARE` longer is a regression"},
			&urfave.StringSliceFlag{Name: "repeat-before", Usage: "another recording of BEFORE, a `DATASET` each time; with three or more on each " +
				"side their spread is the noise"},
			&urfave.StringSliceFlag{Name: "repeat-after", Usage: "another recording of AFTER"},
			&urfave.IntFlag{Name: "top", Value: 15, Usage: "show the `N` rows that changed most"},
			&urfave.BoolFlag{Name: "json", Usage: "write JSON"},
		},
		Action: runDiff,
	}
}

func runDiff(c *urfave.Context) error {
	arguments, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return cli.Mistaken(err)
	case len(arguments) != 2:
		return cli.Mistaken(errors.New("which two datasets? ebpfprof diff BEFORE AFTER"))
	}
	failOn, err := diff.Percent(c.String("fail-on"))
	if err != nil {
		return cli.Usagef("--fail-on: %w", err)
	}
	paths := [2][]string{append(arguments[:1:1], c.StringSlice("repeat-before")...), append(arguments[1:2:2],
		c.StringSlice("repeat-after")...)}
	sides, err := loadSides(c, paths, diff.Load)
	if err == nil && sides[0].What != sides[1].What {
		// One has no steps: what both have is the work as a whole.
		sides, err = loadSides(c, paths, diff.LoadWhole)
	}
	if err != nil {
		return err
	}
	result := diff.Compare(sides[0], sides[1], failOn)
	if c.Bool("json") {
		err = answer.JSON(c, result)
	} else {
		err = result.WriteText(c.App.Writer, c.Int("top"))
	}
	if err != nil {
		return cli.Failed(err)
	}
	if code := result.ExitCode(); code != 0 {
		return urfave.Exit(fmt.Errorf("%s", result.Verdict), code)
	}
	return nil
}

type loader func(context.Context, *dataset.DB) (*diff.Side, error)

func loadSides(c *urfave.Context, paths [2][]string, load loader) (sides [2]*diff.Side, err error) {
	for i, of := range paths {
		var all []*diff.Side
		for _, path := range of {
			side, err := loadSide(c, path, load)
			if err != nil {
				return sides, err
			}
			all = append(all, side)
		}
		sides[i] = diff.Join(all[0], all[1:]...)
	}
	return sides, nil
}

func loadSide(c *urfave.Context, path string, load loader) (*diff.Side, error) {
	db, err := answer.Open(c, path)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	line := answer.NewProgress(c)
	line.Say("reading %s", path)
	side, err := load(c.Context, db)
	line.End()
	if err != nil {
		return nil, cli.Failed(fmt.Errorf("%s: %w", path, err))
	}
	return side, nil
}
