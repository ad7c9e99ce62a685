package main

import (
	"fmt"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// oneDataset is the one argument of a command that reads a dataset.
func oneDataset(c *urfave.Context) (string, error) {
	arguments, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return "", usageError(err)
	case len(arguments) == 0:
		return "", usageError(fmt.Errorf("which dataset? ebpfprof %s DATASET", c.Command.Name))
	case len(arguments) > 1:
		return "", usageError(fmt.Errorf("one dataset at a time: %q is one too many", arguments[1]))
	}
	return arguments[0], nil
}

// openAnalysis opens a dataset for an analysis and says which of its files are
// left out.
func openAnalysis(c *urfave.Context, path string) (*dataset.DB, error) {
	db, err := dataset.Open(path)
	if err != nil {
		return nil, urfave.Exit(err, cli.ExitFailed)
	}
	printWarnings(c, db.Warnings())
	return db, nil
}
