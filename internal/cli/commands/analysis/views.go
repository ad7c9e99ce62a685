package analysis

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/answer/views"
	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

const viewsDescription = `The tables of Holistic Trace Analysis:

   breakdown    what each device's time goes to: computation, other work, idle
   idle         why streams are idle: the host had launched nothing, kernels follow one another, another cause
   overlap      how much communication has computation beside it
   queue        how many launches wait on each stream
   launches     each kernel's launches: short work, slow launches, late starts
   modules, steps, collectives
                regions of one kind: count, median, outliers; --compare up to three of them

   ebpfprof views DATASET                        # all that the dataset has
   ebpfprof views DATASET --view idle --rank 0
   ebpfprof views DATASET --view modules --compare 'Linear,LayerNorm'`

// ViewsCommand is `ebpfprof views`.
func ViewsCommand() *urfave.Command {
	cli.CompleteValues("view", views.Names)
	return &urfave.Command{
		Name:        "views",
		Usage:       "show breakdown, idle causes, overlap, queues, launches and regions of a dataset",
		ArgsUsage:   "DATASET",
		Description: viewsDescription,
		Flags: append([]urfave.Flag{
			&urfave.StringFlag{Name: "view", Usage: strings.Join(views.Names(), ", "), DefaultText: "all"},
			&urfave.StringFlag{Name: "compare", Usage: "only the regions with one of `NAMES` (at most three, comma separated) in theirs"},
			&urfave.IntFlag{Name: "top", Value: 15, Usage: "show `N` rows of each; 0 is all (JSON: always all)"},
			&urfave.BoolFlag{Name: "json", Usage: "write JSON"},
		}, answer.PartFlags()...),
		Action: func(c *urfave.Context) error {
			return withSteps(c, func(db *dataset.DB, threads []timeline.Thread) error { return runViews(c, db, threads) })
		},
	}
}

func runViews(c *urfave.Context, db *dataset.DB, threads []timeline.Thread) error {
	var o views.Options
	if c.IsSet("rank") {
		o.Rank = new(c.Int("rank"))
	}
	if names := c.String("compare"); names != "" {
		o.Names = strings.Split(names, ",")
		if len(o.Names) > 3 {
			return cli.Usagef("--compare: %d names; three can be compared", len(o.Names))
		}
	}
	names := views.Names()
	if one := c.String("view"); one != "" {
		if !slices.Contains(names, one) {
			return cli.Usagef("unknown view %q: one of %s", one, strings.Join(names, ", "))
		}
		names = []string{one}
	}
	tables, untold := []*views.Table{}, []string{}
	line := answer.NewProgress(c)
	defer line.End()
	for _, name := range names {
		line.Say("computing %s", name)
		t, err := views.Build(c.Context, db, name, o)
		switch {
		case errors.Is(err, views.ErrUntold) && len(names) > 1:
			untold = append(untold, err.Error())
			continue
		case err != nil:
			return err
		}
		tables = append(tables, t)
	}
	line.End()
	if c.Bool("json") {
		return answer.JSON(c, tables)
	}
	for i, t := range tables {
		if i > 0 {
			fmt.Fprintln(c.App.Writer)
		}
		fmt.Fprintf(c.App.Writer, "%s: ", strings.ToUpper(t.View[:1])+t.View[1:])
		if err := t.WriteText(c.App.Writer, c.Int("top")); err != nil {
			return err
		}
		if note := timeline.Note(threads); note != "" && (t.View == "modules" || t.View == "steps") {
			fmt.Fprintln(c.App.Writer, note)
		}
	}
	if len(untold) > 0 {
		fmt.Fprintf(c.App.Writer, "\nUnknown\n  %s\n", strings.Join(untold, "\n  "))
	}
	return nil
}
