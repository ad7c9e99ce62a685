package analysis

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/answer/report"
	"github.com/ebpfprof/ebpfprof/internal/answer/views"
	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/dataset/lint"
	"github.com/ebpfprof/ebpfprof/internal/model/calltree"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
)

const treeDescription = `Shows the call tree, from the Python line through operators and runtime calls to the kernel, with one metric:
device_ns (time on the device), cpu_ns and wait_ns (from samples), host_ns (operators' and calls' own time), bytes (allocated).
Backward nodes appear below their forward operator.

   ebpfprof tree DATASET
   ebpfprof tree DATASET --bottom-up --metric device_ns`

// TreeCommand is `ebpfprof tree`.
func TreeCommand() *urfave.Command {
	cli.CompleteValues("metric", calltree.Names)
	return &urfave.Command{
		Name:        "tree",
		Usage:       "show the call tree with times or bytes",
		ArgsUsage:   "DATASET",
		Description: treeDescription,
		Flags: append([]urfave.Flag{
			&urfave.StringFlag{Name: "metric", Usage: strings.Join(calltree.Names(), ", ") + " (default: the first one that was recorded)"},
			&urfave.BoolFlag{Name: "bottom-up", Usage: "leaves first, their callers below"},
			&urfave.Float64Flag{Name: "min", Value: 1, Usage: "hide nodes below `PERCENT` of the total"},
			&urfave.IntFlag{Name: "depth", Usage: "go `N` levels deep (default: all)"},
			&urfave.BoolFlag{Name: "native", Usage: "show native frames too"},
			&urfave.BoolFlag{Name: "save", Usage: "write the tree, top down, to table context_node of the dataset"},
			&urfave.BoolFlag{Name: "json", Usage: "write all nodes as JSON"},
		}, answer.PartFlags()...),
		Action: func(c *urfave.Context) error {
			return answer.Ask(c, func(db *dataset.DB) error { return runTree(c, db) })
		},
	}
}

// weighted are the metrics of rows that slices record, which stand for others; samples are
// taken all the time.
var weighted = []string{"host_ns", "device_ns", "bytes"}

// agree has the tree's times of operators, where they are estimates from slices, be those of the report: samples and the
// clock correct them there.
func agree(c *urfave.Context, db *dataset.DB, tree *calltree.Node) error {
	if !tree.Sliced() || !slices.Contains(tree.Metrics(), "host_ns") || c.IsSet("rank") || c.IsSet("step") || c.IsSet("from") ||
		c.IsSet("to") {
		return nil
	}
	r, err := report.Build(c.Context, db, report.Options{})
	if err != nil {
		return err
	}
	known := map[string]float64{}
	for _, o := range r.Operators {
		known[o.Name] = 1e6 * o.SelfMS
	}
	tree.Known("host_ns", known)
	return nil
}

func runTree(c *urfave.Context, db *dataset.DB) error {
	metric := c.String("metric")
	if metric != "" && !slices.Contains(calltree.Names(), metric) {
		return cli.Usagef("unknown metric %q: one of %s", metric, strings.Join(calltree.Names(), ", "))
	}
	if c.Bool("save") && (c.IsSet("rank") || c.IsSet("step") || c.IsSet("from") || c.IsSet("to")) {
		return cli.Usagef("--save writes the tree of the whole recording: omit --rank, --step, --from and --to")
	}
	if err := answer.Restrict(c, db); err != nil {
		return err
	}
	checks, err := lint.Run(c.Context, db)
	if err != nil {
		return err
	}
	line := answer.NewProgress(c)
	tree, err := calltree.Load(c.Context, db, calltree.Options{Native: c.Bool("native"),
		Progress: func(part float64) { line.Say("reading: %d %%", int(100*part)) }})
	line.End()
	if err != nil {
		return err
	}
	if err := agree(c, db, tree); err != nil {
		return err
	}
	covered, err := views.CoveredBy(c.Context, db, nil)
	if err != nil {
		return err
	}
	if metric == "" {
		there := tree.Metrics()
		if len(there) == 0 {
			return errors.New("no spans, samples or allocations to make a tree of")
		}
		metric = there[0]
		// Of a merged trace, devices are known for a part of the time only.
		if covered.Traces > 0 && metric == "device_ns" && len(there) > 1 {
			metric = there[1]
		}
	}
	if c.Bool("save") {
		if err := tree.Save(db.Root()); err != nil {
			return err
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
		if said := checks.Estimated(); said != "" && slices.Contains(weighted, metric) {
			far := "query --example estimates: their uncertainty"
			if tree.Sliced() {
				far = "± % is the 95 % interval of a row; ? is unknown"
			}
			fmt.Fprintf(c.App.Writer, "%s (%s)\n", said, far)
		}
		if metric == "host_ns" { // of calls that probes saw; the others have no probes in them
			threads, err := timeline.Steps(c.Context, db)
			if err != nil {
				return err
			}
			if note := timeline.Note(threads); note != "" {
				fmt.Fprintln(c.App.Writer, note)
			}
		}
		if text := covered.Text(); text != "" && metric == "device_ns" {
			fmt.Fprintf(c.App.Writer, "time on devices is of %s\n", text)
		}
		style := calltree.Style{MinPercent: c.Float64("min"), Depth: c.Int("depth")}
		if f, ok := c.App.Writer.(*os.File); ok {
			style.Width, _ = terminal.TextStyle(f)
		}
		err = tree.Write(c.App.Writer, metric, style)
	}
	return err
}
