package main

import (
	"errors"
	"fmt"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/timeline"
)

const stepsDescription = `Finds the steps of the loop without help from the job: the order in which a thread calls the data
loader, backward passes, the optimizer and compiled programs repeats, and each repetition is a step. A step's period
goes to the next one's begin; its duration, from the first of these calls to the end of the last one, leaves out what
lies between.

   ebpfprof steps DATASET
   ebpfprof steps DATASET --json | jq '.processes[0].steps'`

// stepsCommand is `ebpfprof steps`.
func stepsCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "steps",
		Usage:       "find the steps of a recording: how many, how long, which were slow",
		ArgsUsage:   "DATASET",
		Description: stepsDescription,
		Flags: []urfave.Flag{
			&urfave.BoolFlag{Name: "save", Usage: "keep them as table step of the dataset"},
			&urfave.BoolFlag{Name: "json", Usage: "write JSON"},
		},
		Action: func(c *urfave.Context) error {
			return withSteps(c, func(db *dataset.DB, threads []timeline.Thread) error {
				if c.Bool("save") {
					if err := timeline.Save(db.Root(), threads); err != nil {
						return err
					}
				}
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
	path, err := oneDataset(c)
	if err != nil {
		return err
	}
	db, err := openAnalysis(c, path)
	if err != nil {
		return err
	}
	defer db.Close()
	threads, err := timeline.Steps(c.Context, db)
	if err == nil {
		err = answer(db, threads)
	}
	var coded urfave.ExitCoder
	if errors.As(err, &coded) {
		return err
	}
	if err != nil {
		return urfave.Exit(fmt.Errorf("%s: %w", path, err), cli.ExitFailed)
	}
	return nil
}
