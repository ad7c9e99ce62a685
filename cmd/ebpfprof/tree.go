package main

import (
	"fmt"
	"os"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/calltree"
	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/lint"
)

const treeDescription = `Who called whom, from the Python line over operators and runtime calls to the kernel, and what was measured there:
device_ns (time on the device), cpu_ns and wait_ns (from samples), host_ns (operators' and calls' own time), bytes (allocated).
Backward nodes stand below the operator that they are of.

   ebpfprof tree DATASET
   ebpfprof tree DATASET --bottom-up --metric device_ns`

// treeCommand is `ebpfprof tree`.
func treeCommand() *urfave.Command {
	cli.CompleteValues("metric", calltree.Names)
	return &urfave.Command{
		Name:        "tree",
		Usage:       "show who called whom, and what it took",
		ArgsUsage:   "DATASET",
		Description: treeDescription,
		Flags: []urfave.Flag{
			&urfave.StringFlag{Name: "metric", Usage: strings.Join(calltree.Names(), ", ") + " (default: the first of them that there is)"},
			&urfave.BoolFlag{Name: "bottom-up", Usage: "what took it first, its callers below"},
			&urfave.Float64Flag{Name: "min", Value: 1, Usage: "leave out what has less than `PERCENT` of the whole"},
			&urfave.IntFlag{Name: "depth", Usage: "go `N` levels deep (default: all)"},
			&urfave.BoolFlag{Name: "native", Usage: "show native frames too"},
			&urfave.BoolFlag{Name: "save", Usage: "keep the tree, top down, as table context_node of the dataset"},
			&urfave.BoolFlag{Name: "json", Usage: "write all nodes as JSON"},
		},
		Action: runTree,
	}
}

func runTree(c *urfave.Context) error {
	path, err := oneDataset(c)
	if err != nil {
		return err
	}
	metric := c.String("metric")
	if metric != "" && !known(calltree.Names(), metric) {
		return usageError(fmt.Errorf("unknown metric %q: one of %s", metric, strings.Join(calltree.Names(), ", ")))
	}
	db, err := openAnalysis(c, path)
	if err != nil {
		return err
	}
	defer db.Close()
	checks, err := lint.Run(c.Context, db)
	if err != nil {
		return urfave.Exit(fmt.Errorf("%s: %w", path, err), cli.ExitFailed)
	}
	line := newProgressLine(c)
	tree, err := calltree.Load(c.Context, db, calltree.Options{Native: c.Bool("native"), Progress: func(part float64) { line.say("reading: %d %%", int(100*part)) }})
	line.end()
	if err != nil {
		return urfave.Exit(fmt.Errorf("%s: %w", path, err), cli.ExitFailed)
	}
	if metric == "" {
		there := tree.Metrics()
		if len(there) == 0 {
			return urfave.Exit(fmt.Errorf("%s has no spans, samples or allocations to make a tree of", path), cli.ExitFailed)
		}
		metric = there[0]
	}
	if c.Bool("save") {
		if err := tree.Save(db.Root()); err != nil {
			return urfave.Exit(err, cli.ExitFailed)
		}
	}
	if c.Bool("bottom-up") {
		tree = tree.Turned(metric)
	}
	if c.Bool("json") {
		err = tree.WriteJSON(c.App.Writer, metric)
	} else {
		if checks.LeftOut > 0 {
			fmt.Fprintln(c.App.Writer, checks.Sentence())
		}
		style := calltree.Style{MinPercent: c.Float64("min"), Depth: c.Int("depth")}
		if f, ok := c.App.Writer.(*os.File); ok {
			style.Width, _ = cli.TextStyle(f)
		}
		err = tree.Write(c.App.Writer, metric, style)
	}
	if err != nil {
		return urfave.Exit(fmt.Errorf("%s: %w", path, err), cli.ExitFailed)
	}
	return nil
}
