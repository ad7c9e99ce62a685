package data

import (
	"errors"
	"fmt"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/dataset/search"
)

const searchDescription = `Finds a text, whatever its case, in the names of calls, kernels and scopes, in functions and files of stacks, in commands,
threads, libraries, counters and warnings: how often, how long, and from when on. The JSON has a query for the rows of each.

   ebpfprof search DATASET layer_norm
   ebpfprof search DATASET nccl --json | jq -r '.[0].sql'`

// SearchCommand is `ebpfprof search`.
func SearchCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "search",
		Usage:       "find a text in a dataset",
		ArgsUsage:   "DATASET TEXT",
		Description: searchDescription,
		Flags: append([]urfave.Flag{
			&urfave.IntFlag{Name: "top", Value: 30, Usage: "show `N` hits; 0 is all (JSON: at most 1000)"},
			&urfave.BoolFlag{Name: "json", Usage: "write JSON"},
		}, answer.PartFlags()...),
		Action: runSearch,
	}
}

func runSearch(c *urfave.Context) error {
	arguments, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return cli.Mistaken(err)
	case len(arguments) != 2 || arguments[1] == "":
		return cli.Mistaken(errors.New("which text in which dataset? ebpfprof search DATASET TEXT"))
	}
	db, err := answer.Open(c, arguments[0])
	if err != nil {
		return err
	}
	defer db.Close()
	if err := answer.Restrict(c, db); err != nil {
		return cli.Failed(err)
	}
	hits, err := search.Run(c.Context, db, arguments[1])
	if err != nil {
		return cli.Failed(err)
	}
	if c.Bool("json") {
		return answer.JSON(c, hits)
	}
	if len(hits) == 0 {
		fmt.Fprintf(c.App.Writer, "%q occurs nowhere in %s.\n", arguments[1], arguments[0])
	}
	return search.WriteText(c.App.Writer, hits, c.Int("top"))
}
