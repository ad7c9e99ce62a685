package benchmark

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/compare"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/numbers"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/results"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/store"
	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
)

// point is a benchmark's number in one session.
type point struct {
	Session string         `json:"session"`
	Begin   string         `json:"begin"`
	Name    string         `json:"name"`
	SysEnv  string         `json:"sysenv"`
	Runs    int            `json:"runs"`
	Value   float64        `json:"value"`
	Lo      *float64       `json:"lo"`
	Hi      *float64       `json:"hi"`
	Unit    string         `json:"unit"`
	Change  compare.Change `json:"since_the_one_before"`

	rows []compare.Row
}

func trendCommand() *urfave.Command {
	return &urfave.Command{
		Name: "trend", Usage: "show how a number of each benchmark went over the sessions", ArgsUsage: "[STORE] [NUMBER]",
		Description: "NUMBER is throughput unless another one is given, such as step_time or io_exposed.",
		Flags: []urfave.Flag{
			storeFlag(),
			&urfave.StringFlag{Name: "name", Usage: "only benchmarks whose names match `REGEX`"},
			&urfave.BoolFlag{Name: "json", Usage: "as JSON"},
		},
		Action: runTrend,
	}
}

func runTrend(c *urfave.Context) error {
	s, contents, arguments, err := opened(c)
	if err != nil {
		return err
	}
	number := numbers.Throughput
	switch len(arguments) {
	case 0:
	case 1:
		number = arguments[0]
	default:
		return cli.Usagef("one number at a time: %q is one too many", arguments[1])
	}
	names, err := namePattern(c)
	if err != nil {
		return err
	}
	all := []point{}
	for _, session := range contents.Sessions {
		side, err := compare.Choose(c.Context, s, contents, compare.Select{ID: session.ID}, names)
		if err != nil {
			return cli.Failed(err)
		}
		side.Only([]string{number})
		out := results.Of(session, contents.RunsOf(session.ID), func(run string) []store.Number { return contents.Numbers[run] }, s.Root())
		for _, b := range out.Benchmarks {
			n, _ := numbers.Find(b.Numbers, number)
			if n.Value == nil || names != nil && !names.MatchString(b.Name) {
				continue
			}
			p := point{Session: session.ID, Begin: time.Unix(0, session.Begin).UTC().Format(time.DateTime), Name: b.Name, SysEnv: b.SysEnv,
				Runs: len(b.Runs), Value: *n.Value, Lo: n.Lo, Hi: n.Hi, Unit: n.Unit, rows: side.Of(b.Name, b.SysEnv)}
			if before := last(all, p); before != nil {
				p.Change = compare.Between(p.rows, before.rows)
			}
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return cli.Failed(fmt.Errorf("no run of the store has a value of %s", number))
	}
	slices.SortStableFunc(all, func(a, b point) int { return compareText(a.Name+a.SysEnv, b.Name+b.SysEnv) })
	if c.Bool("json") {
		return answer.JSON(c, all)
	}
	return answer.Text(c.App.Writer, func(w io.Writer) { writeTrend(w, number, all) })
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// last is the newest point of the same benchmark.
func last(all []point, p point) *point {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Name == p.Name && all[i].SysEnv == p.SysEnv {
			return &all[i]
		}
	}
	return nil
}

const barWidth = 30

func writeTrend(w io.Writer, number string, all []point) {
	most := 0.0
	for _, p := range all {
		most = max(most, p.Value)
	}
	t := terminal.PlainTable("benchmark", "begun (UTC)", "runs", number, "unit", "95 % interval", "since the one before", "")
	for _, p := range all {
		between, change := "", ""
		if p.Lo != nil && p.Hi != nil {
			between = results.Figure(*p.Lo) + " to " + results.Figure(*p.Hi)
		}
		if p.Change.Verdict != "" {
			change = fmt.Sprintf("%+.1f %%, %s", p.Change.Percent, p.Change.Verdict)
		}
		bar := ""
		for range int(barWidth*p.Value/max(most, 1e-300) + 0.5) {
			bar += "█"
		}
		t.AppendRow(table.Row{p.Name + " on " + p.SysEnv, p.Begin, p.Runs, results.Figure(p.Value), p.Unit, between, change, bar})
	}
	terminal.RightAlign(t, 3, 4)
	terminal.Render(w, t)
}
