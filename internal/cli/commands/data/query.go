// Package data is the commands about a dataset as it is: its rows, names and notes,
// and its way from and to other tools. A file a command.
package data

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/dataset/query"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

const queryDescription = `Each table of the dataset is a view of its name, with ts (a timestamp in UTC) beside ts_ns; "ebpfprof schema" lists
the columns. The dataset is only read: one SELECT (WITH, FROM, DESCRIBE, SUMMARIZE, SHOW, EXPLAIN) at a time. Damaged
files are left out, with a warning. The output is an aligned table unless --format says otherwise, in a pipe as well.

   ebpfprof query DATASET 'SELECT name, count(*) FROM span GROUP BY ALL ORDER BY 2 DESC' --format csv
   ebpfprof query DATASET --example operators
   ebpfprof query DATASET - < report.sql
   ebpfprof query DATASET 'SELECT …' --save slow-kernels && ebpfprof query DATASET --saved slow-kernels`

// QueryCommand is `ebpfprof query`: SQL over a dataset.
func QueryCommand() *urfave.Command {
	cli.CompleteValues("query format", query.Formats)
	cli.CompleteValues("example", exampleNames)
	return &urfave.Command{
		Name:        "query",
		Usage:       "run SQL on a dataset",
		ArgsUsage:   "DATASET ['SELECT …' | -]",
		Description: queryDescription,
		Flags: []urfave.Flag{
			&urfave.StringFlag{Name: "format", Value: query.Formats()[0], Usage: strings.Join(query.Formats(), ", ")},
			&urfave.StringFlag{Name: "file", Usage: "read the SQL from `FILE`; - is standard input"},
			&urfave.StringFlag{Name: "example", Usage: "run the example query `NAME`"},
			&urfave.StringFlag{Name: "save", Usage: "keep the query in the dataset under `NAME`, after it has run"},
			&urfave.StringFlag{Name: "saved", Usage: "run the query that was kept under `NAME`"},
			&urfave.BoolFlag{Name: "list-examples", Usage: "list the example queries; with a dataset, also those kept in it"},
		},
		Action: runQuery,
	}
}

func runQuery(c *urfave.Context) error {
	arguments, err := cli.Interspersed(c)
	if err != nil {
		return cli.Mistaken(err)
	}
	if c.Bool("list-examples") {
		for _, e := range query.Examples() {
			fmt.Fprintf(c.App.Writer, "%-14s %s\n", e.Name, e.Title)
		}
		if len(arguments) == 0 {
			return nil
		}
		return listSaved(c, arguments[0])
	}
	if len(arguments) == 0 {
		return cli.Mistaken(errors.New("which dataset? ebpfprof query DATASET 'SELECT …'"))
	}
	sql, err := "", error(nil)
	if !c.IsSet("saved") {
		sql, err = queryText(c, arguments[1:])
	} else if len(arguments) > 1 || c.IsSet("file") || c.IsSet("example") {
		err = cli.Mistaken(errors.New("one query at a time: --saved, or another"))
	}
	if err != nil {
		return err
	}
	if format := c.String("format"); !slices.Contains(query.Formats(), format) {
		return cli.Usagef("unknown format %q: one of %s", format, strings.Join(query.Formats(), ", "))
	}
	db, err := query.Open(arguments[0])
	if err != nil {
		return cli.Failed(err)
	}
	defer db.Close()
	answer.Warn(c, db.Warnings())
	if name := c.String("saved"); name != "" {
		saved, err := db.FindSaved(c.Context, name)
		if err != nil {
			return cli.Failed(err)
		}
		sql = saved.SQL
	}
	if err := db.Write(c.Context, c.App.Writer, sql, c.String("format")); err != nil {
		return cli.Failed(err)
	}
	if name := c.String("save"); name != "" {
		if err := db.Save(c.Context, name, sql); err != nil {
			return cli.Failed(err)
		}
	}
	return nil
}

func listSaved(c *urfave.Context, path string) error {
	db, err := query.Open(path)
	if err != nil {
		return cli.Failed(err)
	}
	defer db.Close()
	all, err := db.Saved(c.Context)
	if err != nil {
		return cli.Failed(err)
	}
	for _, s := range all {
		fmt.Fprintf(c.App.Writer, "%-14s kept in the dataset: %s\n", s.Name, printable.Text(strings.Join(strings.Fields(s.SQL), " ")))
	}
	return nil
}

// queryText finds the SQL in the one place where it was given.
func queryText(c *urfave.Context, arguments []string) (string, error) {
	given := len(arguments)
	for _, flag := range []string{"file", "example"} {
		if c.IsSet(flag) {
			given++
		}
	}
	switch {
	case given == 0:
		return "", cli.Mistaken(errors.New("which query? 'SELECT …', - for standard input, --file FILE or --example NAME"))
	case given > 1:
		return "", cli.Mistaken(errors.New("one query at a time: quote it, or give only one of a query, --file and --example"))
	case c.IsSet("example"):
		e, err := query.FindExample(c.String("example"))
		if err != nil {
			return "", cli.Mistaken(err)
		}
		return e.SQL, nil
	case c.IsSet("file") && c.String("file") != "-":
		text, err := os.ReadFile(c.String("file"))
		if err != nil {
			return "", cli.Failed(fmt.Errorf("reading the query: %w", err))
		}
		return string(text), nil
	case c.IsSet("file") || arguments[0] == "-":
		text, err := io.ReadAll(c.App.Reader)
		if err != nil {
			return "", cli.Failed(fmt.Errorf("reading the query: %w", err))
		}
		return string(text), nil
	default:
		return arguments[0], nil
	}
}

func exampleNames() (names []string) {
	for _, e := range query.Examples() {
		names = append(names, e.Name)
	}
	return names
}
