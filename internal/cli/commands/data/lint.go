package data

import (
	"fmt"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/dataset/lint"
)

const lintDescription = `Checks for defects that distort answers: invalid durations, kernels without a launch, lost events, missing ranks,
clocks that disagree. Every command leaves invalid rows out and reports how many.

   ebpfprof lint DATASET
   ebpfprof lint DATASET --strict || echo 'look before you trust it'`

// LintCommand is `ebpfprof lint`.
func LintCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "lint",
		Usage:       "check a dataset before trusting it",
		ArgsUsage:   "DATASET",
		Description: lintDescription,
		Flags: []urfave.Flag{
			&urfave.BoolFlag{Name: "json", Usage: "write JSON"},
			&urfave.BoolFlag{Name: "strict", Usage: "exit with 1 if a row is invalid or a check warns"},
		},
		Action: func(c *urfave.Context) error {
			return answer.Ask(c, func(db *dataset.DB) error { return runLint(c, db) })
		},
	}
}

func runLint(c *urfave.Context, db *dataset.DB) error {
	line := answer.NewProgress(c)
	line.Say("checking")
	result, err := lint.Run(c.Context, db)
	line.End()
	if err != nil {
		return err
	}
	if c.Bool("json") {
		err = answer.JSON(c, result)
	} else {
		err = printLint(c, result)
	}
	if err != nil {
		return err
	}
	if c.Bool("strict") {
		for _, check := range result.Checks {
			if check.Severity == lint.LeftOut || check.Severity == lint.Warning {
				return fmt.Errorf("%d rows are invalid, or a check warns", result.LeftOut)
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
