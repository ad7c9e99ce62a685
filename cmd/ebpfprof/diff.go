package main

import (
	"errors"
	"fmt"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/diff"
)

const diffDescription = `Says first whether a step takes longer, less, or as long as before, or that it cannot be told; then whether the two can be
compared, and what moved: operators, kernels, lines. Exit codes: 0 neutral or improvement, 10 regression, 12 inconclusive.

   ebpfprof diff before.dataset after.dataset --fail-on 3%`

// diffCommand is `ebpfprof diff`.
func diffCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "diff",
		Usage:       "compare two recordings of a job",
		ArgsUsage:   "BEFORE AFTER",
		Description: diffDescription,
		Flags: []urfave.Flag{
			&urfave.StringFlag{Name: "fail-on", Value: "3%", Usage: "a step that is `SHARE` longer is a regression"},
			&urfave.IntFlag{Name: "top", Value: 15, Usage: "show the `N` rows that moved most"},
			&urfave.BoolFlag{Name: "json", Usage: "write JSON"},
		},
		Action: runDiff,
	}
}

func runDiff(c *urfave.Context) error {
	arguments, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return usageError(err)
	case len(arguments) != 2:
		return usageError(errors.New("which two datasets? ebpfprof diff BEFORE AFTER"))
	}
	failOn, err := diff.Percent(c.String("fail-on"))
	if err != nil {
		return usageError(fmt.Errorf("--fail-on: %w", err))
	}
	var sides [2]*diff.Side
	for i, path := range arguments {
		if sides[i], err = loadSide(c, path); err != nil {
			return err
		}
	}
	result := diff.Compare(sides[0], sides[1], failOn)
	if c.Bool("json") {
		err = writeJSON(c, result)
	} else {
		err = result.WriteText(c.App.Writer, c.Int("top"))
	}
	if err != nil {
		return urfave.Exit(err, cli.ExitFailed)
	}
	if code := result.ExitCode(); code != 0 {
		return urfave.Exit(fmt.Errorf("%s", result.Verdict), code)
	}
	return nil
}

func loadSide(c *urfave.Context, path string) (*diff.Side, error) {
	db, err := openAnalysis(c, path)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	side, err := diff.Load(c.Context, db)
	if err != nil {
		return nil, urfave.Exit(fmt.Errorf("%s: %w", path, err), cli.ExitFailed)
	}
	return side, nil
}
