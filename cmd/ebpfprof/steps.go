package main

import (
	"fmt"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/timeline"
)

const stepsDescription = `Finds the steps of the loop without help from the job: the order in which a thread calls the data loader, backward
passes, the optimizer and compiled programs repeats, and each repetition is a step. A step's period goes to the next
one's begin; its duration, from the first of these calls to the end of the last one, leaves out what lies between.

   ebpfprof steps DATASET
   ebpfprof steps DATASET --json | jq '.processes[0].steps'`

// stepsCommand is `ebpfprof steps`.
func stepsCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "steps",
		Usage:       "find the steps of a recording: how many, how long, which were slow",
		ArgsUsage:   "DATASET",
		Description: stepsDescription,
		Flags:       []urfave.Flag{&urfave.BoolFlag{Name: "json", Usage: "write JSON"}},
		Action: func(c *urfave.Context) error {
			return withSteps(c, func(_ *dataset.DB, threads []timeline.Thread) error {
				summary := timeline.Summarize(threads)
				if c.Bool("json") {
					return writeJSON(c, summary)
				}
				return summary.WriteText(c.App.Writer)
			})
		},
	}
}

// withSteps opens the command's dataset, finds its steps and hands both on.
func withSteps(c *urfave.Context, answer func(*dataset.DB, []timeline.Thread) error) error {
	arguments, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return usageError(err)
	case len(arguments) != 1:
		return usageError(fmt.Errorf("which dataset? ebpfprof %s DATASET", c.Command.Name))
	}
	db, err := dataset.Open(arguments[0])
	if err != nil {
		return urfave.Exit(err, cli.ExitFailed)
	}
	defer db.Close()
	printWarnings(c, db.Warnings())
	threads, err := timeline.Steps(c.Context, db)
	if err == nil {
		err = answer(db, threads)
	}
	if err != nil {
		return urfave.Exit(fmt.Errorf("%s: %w", arguments[0], err), cli.ExitFailed)
	}
	return nil
}
