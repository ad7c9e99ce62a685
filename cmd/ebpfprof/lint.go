package main

import (
	"encoding/json"
	"fmt"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/lint"
	"github.com/ebpfprof/ebpfprof/internal/printable"
)

const lintDescription = `Looks for what would spoil an answer: durations that cannot be, work without a launch, events that were lost, ranks that
are missing, clocks that disagree. Rows that cannot be are left out by every answer, and it says so.

   ebpfprof lint DATASET
   ebpfprof lint DATASET --strict || echo 'look before you trust it'`

// lintCommand is `ebpfprof lint`.
func lintCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "lint",
		Usage:       "check a dataset before trusting it",
		ArgsUsage:   "DATASET",
		Description: lintDescription,
		Flags: []urfave.Flag{
			&urfave.BoolFlag{Name: "json", Usage: "write JSON"},
			&urfave.BoolFlag{Name: "strict", Usage: "exit with 1 when rows have to be left out or a check warns"},
		},
		Action: runLint,
	}
}

func runLint(c *urfave.Context) error {
	path, err := oneDataset(c)
	if err != nil {
		return err
	}
	db, err := openAnalysis(c, path)
	if err != nil {
		return err
	}
	defer db.Close()
	result, err := lint.Run(c.Context, db)
	if err != nil {
		return urfave.Exit(fmt.Errorf("%s: %w", path, err), cli.ExitFailed)
	}
	if c.Bool("json") {
		out := json.NewEncoder(printable.JSON(c.App.Writer))
		out.SetIndent("", "  ")
		err = out.Encode(result)
	} else {
		err = printLint(c, result)
	}
	if err != nil {
		return urfave.Exit(err, cli.ExitFailed)
	}
	if c.Bool("strict") {
		for _, check := range result.Checks {
			if check.Severity == lint.LeftOut || check.Severity == lint.Warning {
				return urfave.Exit(fmt.Errorf("%s: %d rows are left out, and a check warns or more", path, result.LeftOut), cli.ExitFailed)
			}
		}
	}
	return nil
}

func printLint(c *urfave.Context, r *lint.Result) error {
	w := c.App.Writer
	fmt.Fprintf(w, "Answers are %s.\n\n", r.Sentence())
	for _, check := range r.Checks {
		if check.Severity == lint.OK {
			continue
		}
		detail := check.Detail
		if check.Severity == lint.LeftOut {
			detail = fmt.Sprintf("%d rows %s", check.Count, detail)
		}
		fmt.Fprintf(w, "  %-8s  %-22s  %s\n", check.Severity, check.Name, detail)
	}
	fine := 0
	for _, check := range r.Checks {
		if check.Severity == lint.OK {
			fine++
		}
	}
	_, err := fmt.Fprintf(w, "  %-8s  %d checks found nothing\n", lint.OK, fine)
	return err
}
