package benchmark

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/compare"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/inventory"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/results"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/store"
	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
)

func storeFlag() urfave.Flag {
	return &urfave.StringFlag{Name: "store", Value: defaultStore, Usage: "read results of `DIR`"}
}

func outputFlags(formats []string) []urfave.Flag {
	return []urfave.Flag{
		&urfave.StringFlag{Name: "format", Value: "text", Usage: strings.Join(formats, ", ")},
		&urfave.BoolFlag{Name: "json", Usage: "the same as --format json"},
		&urfave.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE` (default: standard output)"},
	}
}

// opened reads the store of a command, and returns its other arguments: the first may be the store.
func opened(c *urfave.Context) (*store.Store, *store.Contents, []string, error) {
	arguments, err := cli.Interspersed(c)
	if err != nil {
		return nil, nil, nil, cli.Mistaken(err)
	}
	name := c.String("store")
	if len(arguments) > 0 && !c.IsSet("store") {
		if info, err := os.Stat(arguments[0]); err == nil && info.IsDir() {
			name, arguments = arguments[0], arguments[1:]
		}
	}
	s, err := store.Open(name)
	if err != nil {
		return nil, nil, nil, cli.Failed(err)
	}
	contents, err := s.Read()
	if err != nil {
		return nil, nil, nil, cli.Failed(err)
	}
	answer.Warn(c, contents.Warnings)
	return s, contents, arguments, nil
}

// listed is a session as list has it.
type listed struct {
	Session  string `json:"session"`
	Begin    string `json:"begin"`
	Host     string `json:"host"`
	Runs     int    `json:"runs"`
	Failures int    `json:"failures"`
	Names    string `json:"benchmarks"`
	Extras   string `json:"extras"`
}

func listCommand() *urfave.Command {
	return &urfave.Command{
		Name: "list", Usage: "list the sessions of a store", ArgsUsage: "[STORE]",
		Flags: []urfave.Flag{storeFlag(), &urfave.BoolFlag{Name: "json", Usage: "as JSON"}},
		Action: func(c *urfave.Context) error {
			_, contents, arguments, err := opened(c)
			if err != nil {
				return err
			}
			if len(arguments) > 0 {
				return cli.Usagef("unexpected argument %q", arguments[0])
			}
			all := []listed{}
			for _, s := range contents.Sessions {
				all = append(all, listedOf(contents, s))
			}
			if c.Bool("json") {
				return answer.JSON(c, all)
			}
			return answer.Text(c.App.Writer, func(w io.Writer) {
				t := terminal.PlainTable("session", "begun (UTC)", "host", "runs", "failed", "benchmarks", "extras")
				for _, l := range all {
					t.AppendRow(table.Row{l.Session, l.Begin, l.Host, l.Runs, l.Failures, l.Names, l.Extras})
				}
				terminal.Render(w, t)
			})
		},
	}
}

func listedOf(contents *store.Contents, s store.Session) listed {
	l := listed{Session: s.ID, Begin: time.Unix(0, s.Begin).UTC().Format(time.DateTime), Host: s.Host, Extras: s.Extras}
	var names []string
	for _, r := range contents.RunsOf(s.ID) {
		l.Runs++
		if r.Result == "fail" || r.Result == "xpass" {
			l.Failures++
		}
		if len(names) == 0 || names[len(names)-1] != r.Name {
			names = append(names, r.Name)
		}
	}
	l.Names = strings.Join(names, ", ")
	return l
}

func showCommand() *urfave.Command {
	return &urfave.Command{
		Name: "show", Usage: "show a session of a store as bench did", ArgsUsage: "[STORE] [SESSION]",
		Description: "SESSION is its name, or a beginning that only one has; without it the newest.",
		Flags:       append([]urfave.Flag{storeFlag()}, outputFlags(results.Formats())...),
		Action: func(c *urfave.Context) error {
			s, contents, arguments, err := opened(c)
			if err != nil {
				return err
			}
			format, err := answer.Format(c, results.Formats())
			if err != nil {
				return err
			}
			id := "last"
			if len(arguments) > 0 {
				id = arguments[0]
			}
			session, err := contents.Session(id)
			if err != nil {
				return cli.Failed(err)
			}
			out := results.Of(session, contents.RunsOf(session.ID), func(run string) []store.Number { return contents.Numbers[run] }, s.Root())
			return show(c, out, format)
		},
	}
}

func deleteCommand() *urfave.Command {
	return &urfave.Command{
		Name: "delete", Usage: "delete sessions of a store, with their recordings", ArgsUsage: "[STORE] SESSION …",
		Flags: []urfave.Flag{storeFlag()},
		Action: func(c *urfave.Context) error {
			s, contents, arguments, err := opened(c)
			if err != nil {
				return err
			}
			if len(arguments) == 0 {
				return cli.Usagef("which session? ebpfprof bench list shows them")
			}
			for _, id := range arguments {
				session, err := contents.Session(id)
				if err != nil {
					return cli.Failed(err)
				}
				if err := s.Delete(session.ID); err != nil {
					return cli.Failed(err)
				}
				fmt.Fprintf(c.App.Writer, "deleted %s\n", session.ID)
			}
			return nil
		},
	}
}

const compareDescription = `SPEC is in ReFrame's grammar: [SELECT/]SELECT/AGGREGATION:[GROUP]/[COLUMNS]. The left side is compared with the right one.

SELECT is a session, last, last-1, a period such as now-7d:now, or PERIOD?EXPRESSION over sessions: now-7d:now?branch=="main",
where branch was given with --session-extras. AGGREGATION is first, last, min, max, mean, median, std, sum, count, pNN or
stats, also of another column than pval: mean(pref). GROUP replaces name,sysenv,pvar,punit, or adds to it: +environ; so does
COLUMNS. pdiff is (left − right) ÷ right.

   ebpfprof bench compare last/last-1/mean:/
   ebpfprof bench compare STORE 'now-1d:now/now-8d:now-1d/median:+environ/+psamples'

What differs in machine and software stands first. A verdict stands beside each difference, and is "within noise" where
the runs differ as much at random (Welch, 95 %, and 2 %).`

func compareCommand() *urfave.Command {
	return &urfave.Command{
		Name: "compare", Usage: "compare sessions, or periods, of a store", ArgsUsage: "[STORE] SPEC", Description: compareDescription,
		Flags: append([]urfave.Flag{
			storeFlag(),
			&urfave.StringFlag{Name: "name", Usage: "only benchmarks whose names match `REGEX`"},
			&urfave.StringFlag{Name: "number", Usage: "only these numbers: `NAME[,…]`"},
		}, outputFlags(compare.Formats())...),
		Action: runCompare,
	}
}

func runCompare(c *urfave.Context) error {
	s, contents, arguments, err := opened(c)
	if err != nil {
		return err
	}
	format, err := answer.Format(c, compare.Formats())
	if err != nil {
		return err
	}
	if len(arguments) != 1 {
		return cli.Usagef("give one comparison, such as last/last-1/mean:/")
	}
	spec, err := compare.Parse(arguments[0], time.Now())
	if err != nil {
		return cli.Mistaken(err)
	}
	names, err := namePattern(c)
	if err != nil {
		return err
	}
	left, err := compare.Choose(c.Context, s, contents, spec.Left, names)
	if err != nil {
		return cli.Failed(err)
	}
	right, err := compare.Choose(c.Context, s, contents, spec.Right, names)
	if err != nil {
		return cli.Failed(err)
	}
	if wanted := split(c.String("number")); len(wanted) > 0 {
		left.Only(wanted)
		right.Only(wanted)
	}
	t, err := spec.Table(left.Rows, right.Rows)
	if err != nil {
		return cli.Mistaken(err)
	}
	if len(t.Rows) == 0 {
		return cli.Failed(errors.New("nothing is on both sides: no benchmark of the same name ran on the same system and environ"))
	}
	out := &compare.Comparison{Differs: inventory.Differences(left.Inventories, right.Inventories), Left: left.Runs, Right: right.Runs,
		Table: t}
	err = answer.To(c, func(w io.Writer) error {
		if format == "json" {
			return out.WriteJSON(w)
		}
		var failed error
		return errors.Join(answer.Text(w, func(w io.Writer) { failed = out.Write(w, format) }), failed)
	})
	if err != nil {
		return cli.Failed(fmt.Errorf("writing the comparison: %w", err))
	}
	return nil
}

func namePattern(c *urfave.Context) (*regexp.Regexp, error) {
	if c.String("name") == "" {
		return nil, nil
	}
	re, err := regexp.Compile(c.String("name"))
	if err != nil {
		return nil, cli.Usagef("--name: %s", printable.Text(err.Error()))
	}
	return re, nil
}
