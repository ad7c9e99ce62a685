// Package answer is what the commands that answer questions have in common: which
// dataset is meant, in which format the answer is, where it goes, what is said
// meanwhile.
package answer

import (
	"errors"
	"fmt"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/dataset/query"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// Path is the one argument of a command that reads a dataset.
func Path(c *urfave.Context) (string, error) {
	arguments, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return "", cli.Mistaken(err)
	case len(arguments) == 0:
		return "", cli.Usagef("which dataset? ebpfprof %s DATASET", c.Command.Name)
	case len(arguments) > 1:
		return "", cli.Usagef("one dataset at a time: %q is one too many", arguments[1])
	}
	return arguments[0], nil
}

// Open opens a dataset for an analysis and says which of its files are left out.
func Open(c *urfave.Context, path string) (*dataset.DB, error) {
	db, err := dataset.Open(path)
	if err != nil {
		return nil, cli.Failed(err)
	}
	Warn(c, db.Warnings())
	return db, nil
}

// Ask opens the one dataset of a command, asks it and closes it. Errors name the
// dataset, but for mistakes in the command line.
func Ask(c *urfave.Context, ask func(*dataset.DB) error) error {
	path, err := Path(c)
	if err != nil {
		return err
	}
	db, err := Open(c, path)
	if err != nil {
		return err
	}
	defer db.Close()
	err = ask(db)
	var coded urfave.ExitCoder
	if err == nil || errors.As(err, &coded) {
		return err
	}
	return cli.Failed(fmt.Errorf("%s: %w", path, err))
}

// OpenQuery opens a dataset for SQL and says which of its files are left out.
func OpenQuery(c *urfave.Context, path string) (*query.DB, error) {
	db, err := query.Open(path)
	if err != nil {
		return nil, cli.Failed(err)
	}
	Warn(c, db.Warnings())
	return db, nil
}

// Warn says what an answer had to do without.
func Warn(c *urfave.Context, warnings []string) {
	for _, warning := range warnings {
		fmt.Fprintln(c.App.ErrWriter, "warning:", printable.Text(warning))
	}
}
