package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jedib0t/go-pretty/v6/table"
	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
	"github.com/ebpfprof/ebpfprof/symbolize/demangle"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/asked"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/filter"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// ProbesCommand is `ebpfprof probes`.
func ProbesCommand() *urfave.Command {
	return &urfave.Command{
		Name:      "probes",
		Usage:     "show where the probes of a job or a library would sit, and why there",
		UsageText: "ebpfprof probes --pid PID | --library FILE | --groups",
		Flags: []urfave.Flag{
			&urfave.IntFlag{Name: "pid", Aliases: []string{"p"}, Usage: "the libraries of the process `PID`"},
			&urfave.StringFlag{Name: "library", Aliases: []string{"l"}, Usage: "this library `FILE`"},
			&urfave.StringFlag{Name: "probe", Usage: "only what matches `FILTER`, as attach takes it"},
			&urfave.StringFlag{Name: "exclude", Usage: "not what matches `FILTER`"},
			&urfave.StringSliceFlag{Name: "probe-symbol", Usage: "the function `LIB:SYMBOL` too, as attach takes it"},
			&urfave.StringSliceFlag{Name: "usdt", Usage: "the USDT probe `PROVIDER:NAME` too"},
			&urfave.BoolFlag{Name: "groups", DisableDefaultText: true, Usage: "list the groups that --probe takes"},
			&urfave.BoolFlag{Name: "json", DisableDefaultText: true, Usage: "print JSON"},
		},
		Action: func(c *urfave.Context) error {
			if err := cli.NoArguments(c); err != nil {
				return err
			}
			if c.Bool("groups") {
				printGroups()
				return nil
			}
			options := tracer.Options{Level: tracer.LevelWindow}
			var err error
			if options.Filter, err = filter.New(c.String("probe"), c.String("exclude")); err != nil {
				return cli.Mistaken(err)
			}
			if options.Asked, err = asked.Group(c.StringSlice("probe-symbol"), c.StringSlice("usdt")); err != nil {
				return cli.Mistaken(err)
			}
			groups, err := options.SelectGroups()
			if err != nil {
				return cli.Mistaken(err)
			}
			var plans []*plan.Plan
			switch {
			case c.String("library") != "":
				plans, err = planFile(c.String("library"), groups)
			case c.Int("pid") > 0:
				plans, err = planProcess(c.Int("pid"), groups)
			default:
				return cli.Usagef("give --pid PID or --library FILE")
			}
			if err != nil {
				return err
			}
			for _, p := range plans {
				p.Keep(&options.Filter)
			}
			rows := plannedRows(plans)
			if c.Bool("json") {
				e := json.NewEncoder(printable.JSON(os.Stdout))
				e.SetIndent("", "  ")
				return e.Encode(rows)
			}
			printPlanned(rows)
			return nil
		},
	}
}

func planFile(path string, groups []spec.Group) ([]*plan.Plan, error) {
	e, err := elf.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no file %s", path)
	case errors.Is(err, elf.ErrNotELF):
		return nil, fmt.Errorf("%s is not a library: no ELF file", path)
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read as a library: %w", path, err)
	}
	planned := plan.Library(e, path, groups)
	if len(planned.Probes) == 0 {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			planned = plan.Library(e, real, groups)
		}
	}
	if len(planned.Probes) == 0 && plan.IsPlugin(e, groups) {
		return nil, fmt.Errorf("%s is a PJRT plugin: its functions are found in the memory of a process that has loaded it; give --pid", path)
	}
	if len(planned.Probes) == 0 {
		return nil, fmt.Errorf("%s: no function of the catalog is in it; ebpfprof probes --groups lists what is looked for", path)
	}
	return []*plan.Plan{planned}, nil
}

func planProcess(pid int, groups []spec.Group) ([]*plan.Plan, error) {
	p, err := process.Open(pid)
	if err != nil {
		return nil, err
	}
	libraries, err := p.Libraries()
	if err != nil {
		return nil, err
	}
	var plans []*plan.Plan
	for _, library := range libraries {
		e, err := library.OpenELF()
		if err != nil {
			continue
		}
		if planned := plan.Mapped(p, libraries, library, e, groups); len(planned.Probes) > 0 {
			plans = append(plans, planned)
		}
	}
	if len(plans) == 0 {
		return nil, fmt.Errorf("pid %d maps no library that the catalog knows; ebpfprof probes --groups lists what is looked for", pid)
	}
	return plans, nil
}

// plannedRow is one line of the listing.
type plannedRow struct {
	Library string `json:"library"`
	Group   string `json:"group"`
	Symbol  string `json:"symbol"`
	Kind    string `json:"kind"`
	Offset  string `json:"offset"`
	Cost    string `json:"cost"`
	Reason  string `json:"reason"`
}

func plannedRows(plans []*plan.Plan) []plannedRow {
	rows := []plannedRow{}
	for _, planned := range plans {
		for i := range planned.Probes {
			for _, s := range planned.Probes[i].Sites() {
				rows = append(rows, plannedRow{
					Library: filepath.Base(planned.Path), Group: planned.Probes[i].Group.Name, Symbol: demangle.Short(planned.Probes[i].Symbol),
					Kind: s.Kind, Offset: s.Offset, Cost: s.Cost, Reason: s.Reason,
				})
			}
		}
	}
	return rows
}

func printPlanned(rows []plannedRow) {
	t := terminal.PlainTable("library", "group", "symbol", "kind", "offset", "cost", "reason")
	costs := map[string]int{}
	for _, r := range rows {
		t.AppendRow(table.Row{r.Library, r.Group, r.Symbol, r.Kind, r.Offset, r.Cost, r.Reason})
		costs[r.Kind+" "+r.Cost]++
	}
	terminal.Render(os.Stdout, t)
	fmt.Fprintf(os.Stderr, "%d sites: ", len(rows))
	for _, kind := range []string{"entry", "exit", "return"} {
		for _, cost := range []string{"nop5", "emulated", "stepped", "none"} {
			if n := costs[kind+" "+cost]; n > 0 {
				fmt.Fprintf(os.Stderr, "%d %s %s  ", n, kind, cost)
			}
		}
	}
	fmt.Fprintln(os.Stderr)
}

func printGroups() {
	t := terminal.PlainTable("group", "kept within the budget by", "functions", "what")
	for _, g := range catalog.Groups() {
		tier := "always on"
		switch {
		case g.Launches:
			tier = "slices; always on before 6.6"
		case g.Tier == spec.Detail:
			tier = "slices"
		}
		t.AppendRow(table.Row{g.Name, tier, len(g.Functions), g.Help})
	}
	terminal.Render(os.Stdout, t)
}
