package analysis

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/answer/hang"
	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/exchange/export"
	"github.com/ebpfprof/ebpfprof/internal/fleet/evidence"
	"github.com/ebpfprof/ebpfprof/internal/model/profile"
	"github.com/ebpfprof/ebpfprof/internal/model/stacks"
	"github.com/ebpfprof/ebpfprof/internal/text/amount"
	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
)

const stacksDescription = `Adds up the samples of a dataset. The tree shows who called whom: the share of all time, a function's own share, what it
is (py: Python, c: native, k: kernel, op: operator) and its name; runs of native frames without time of their own are
one line unless --full. Off the CPU the time is what threads waited for longer than the recording's threshold.

   ebpfprof stacks DATASET --pid 4711
   ebpfprof stacks DATASET --off-cpu --threads
   ebpfprof stacks DATASET --standing
   ebpfprof stacks DATASET --folded | flamegraph.pl --countname us > flame.svg
   ebpfprof stacks DATASET --pprof p.gz && go tool pprof -http : p.gz`

// StacksCommand is `ebpfprof stacks`.
func StacksCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "stacks",
		Usage:       "show the hottest stacks of a dataset",
		ArgsUsage:   "DATASET",
		Description: stacksDescription,
		Flags: []urfave.Flag{
			&urfave.IntSliceFlag{Name: "pid", Usage: "only the process `PID`; repeat for several"},
			&urfave.IntSliceFlag{Name: "tid", Usage: "only the thread `TID`"},
			&urfave.BoolFlag{Name: "off-cpu", Usage: "show waiting time instead of running time"},
			&urfave.BoolFlag{Name: "standing", Usage: "show where every thread stood when the recording ended, if a main thread stood still"},
			&urfave.BoolFlag{Name: "gil", Usage: "only while the thread held Python's global lock"},
			&urfave.BoolFlag{Name: "threads", Usage: "separate threads"},
			&urfave.IntFlag{Name: "top", Value: 20, Usage: "show the `N` hottest functions and paths"},
			&urfave.BoolFlag{Name: "full", Usage: "show every native frame"},
			&urfave.BoolFlag{Name: "folded", Usage: "write folded stacks with microseconds, for flamegraph.pl and speedscope"},
			&urfave.BoolFlag{Name: "json", Usage: "write JSON"},
			&urfave.StringFlag{Name: "pprof", Usage: "write a profile for go tool pprof to `FILE`"},
		},
		Action: runStacks,
	}
}

func runStacks(c *urfave.Context) error {
	arguments, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return cli.Mistaken(err)
	case len(arguments) != 1:
		return cli.Usagef("which dataset? ebpfprof stacks DATASET")
	case c.Int("top") <= 0:
		return cli.Usagef("--top %d: give a positive number", c.Int("top"))
	case c.Bool("standing") && countOf(c.Bool("folded"), c.IsSet("pprof"), c.Bool("gil"), c.Bool("off-cpu")) > 0:
		return cli.Usagef("--standing shows threads that waited: no --off-cpu, --gil, --folded or --pprof")
	case countOf(c.Bool("folded"), c.Bool("json"), c.IsSet("pprof")) > 1:
		return cli.Usagef("one of --folded, --json and --pprof")
	case c.IsSet("pprof") && c.String("pprof") == "":
		return cli.Usagef("--pprof needs the name of a file")
	}
	db, err := answer.OpenQuery(c, arguments[0])
	if err != nil {
		return err
	}
	defer db.Close()
	if c.Bool("standing") {
		return writeStanding(c, db.DB)
	}
	filter := stacks.Filter{
		PIDs: c.IntSlice("pid"), TIDs: c.IntSlice("tid"), OffCPU: c.Bool("off-cpu"), GIL: c.Bool("gil"), Threads: c.Bool("threads"),
	}
	p, err := stacks.Load(c.Context, db.DB, filter)
	if err != nil {
		return cli.Failed(fmt.Errorf("%s: %w", arguments[0], err))
	}
	switch {
	case c.Bool("folded"):
		err = export.WriteFolded(c.App.Writer, p)
	case c.Bool("json"):
		err = writeStacksJSON(c.App.Writer, p, c.Int("top"))
	case c.IsSet("pprof"):
		err = writePprof(c.String("pprof"), p, filter.OffCPU)
	default:
		err = printStacks(c, p, filter)
	}
	if err != nil {
		return cli.Failed(err)
	}
	return nil
}

// writeStanding writes where threads stood still.
func writeStanding(c *urfave.Context, db *dataset.DB) error {
	waits, err := evidence.Analyse(c.Context, db)
	if err != nil {
		return cli.Failed(err)
	}
	waits.Standing = slices.DeleteFunc(waits.Standing, func(p hang.Process) bool {
		return c.IsSet("pid") && !slices.Contains(c.IntSlice("pid"), int(p.PID))
	})
	if !c.Bool("json") {
		return waits.WriteStanding(c.App.Writer)
	}
	e := json.NewEncoder(c.App.Writer)
	e.SetIndent("", "  ")
	return e.Encode(append([]hang.Process{}, waits.Standing...))
}

func countOf(conditions ...bool) (n int) {
	for _, is := range conditions {
		if is {
			n++
		}
	}
	return n
}

func writePprof(path string, p profile.Profile, offCPU bool) (err error) {
	kind := export.PprofCPU
	if offCPU {
		kind = export.PprofDelay
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing the profile: %w", err)
	}
	if err = errors.Join(export.WritePprof(file, p, kind), file.Close()); err != nil {
		err = errors.Join(err, os.Remove(path))
		return fmt.Errorf("writing the profile: %w", err)
	}
	return nil
}

func printStacks(c *urfave.Context, p profile.Profile, filter stacks.Filter) error {
	style := profile.Style{Full: c.Bool("full")}
	if f, ok := c.App.Writer.(*os.File); ok {
		style.Width, style.Color = terminal.TextStyle(f)
	}
	w, all, state := c.App.Writer, p.WeightNS(), "on the CPU"
	if filter.OffCPU {
		state = "off the CPU"
	}
	fmt.Fprintf(w, "%s %s, %d samples\n\n", amount.Seconds(all), state, p.Samples())
	root := p.Tree()
	dropped := root.Hottest(c.Int("top"))
	if err := profile.WriteTree(w, root, style); err != nil {
		return err
	}
	if dropped > 0 {
		fmt.Fprintf(w, "\npaths left out, with less time: %d; --top shows more\n", dropped)
	}
	fmt.Fprintln(w)
	functions := p.Functions()
	return profile.WriteFunctions(w, functions[:min(len(functions), c.Int("top"))], all, style)
}

// The JSON form: times in nanoseconds, frames leaf first.
type stacksJSON struct {
	WeightNS  int64           `json:"weight_ns"`
	Samples   int64           `json:"samples"`
	Functions []functionJSON  `json:"functions"`
	Stacks    []profile.Entry `json:"stacks"`
}

type functionJSON struct {
	Function string `json:"function"`
	Kind     string `json:"kind"`
	SelfNS   int64  `json:"self_ns"`
	TotalNS  int64  `json:"total_ns"`
}

func writeStacksJSON(w io.Writer, p profile.Profile, top int) error {
	out := stacksJSON{WeightNS: p.WeightNS(), Samples: p.Samples(), Stacks: p.Entries(top)}
	for i, f := range p.Functions() {
		if i == top {
			break
		}
		out.Functions = append(out.Functions, functionJSON{f.Label, string(f.Kind), f.SelfNS, f.TotalNS})
	}
	return answer.Indented(w, out)
}
