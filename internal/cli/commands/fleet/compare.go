package fleet

import (
	"errors"
	"fmt"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/answer/diff"
	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/fleet/history"
)

const compareDescription = `Reports whether a job's steps take longer now than in its best period, or than some time ago, and which function on
which worker causes it. Exit codes: 0 neutral or improvement, 10 regression, 12 inconclusive.

   ebpfprof fleet compare /shared/patterns --job llama
   ebpfprof fleet compare /shared/patterns --job llama --since 1h --ago 168h    # with last week
   ebpfprof fleet compare s3://profiles/fleet?endpoint=https://storage.example.com --fail-on 3%`

func compareCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "compare",
		Usage:       "compare a job with its best period, or with last week",
		ArgsUsage:   "STORE",
		Description: compareDescription,
		Flags: []urfave.Flag{
			&urfave.StringFlag{Name: "job", Usage: "the job's `NAME`", DefaultText: "the one seen last"},
			&urfave.DurationFlag{Name: "since", Value: 10 * time.Minute, Usage: "now is the last `TIME` before the newest step"},
			&urfave.DurationFlag{Name: "ago", Usage: "compare with an equally long period, `TIME` earlier", DefaultText: "its best time in --look"},
			&urfave.DurationFlag{Name: "look", Value: 24 * time.Hour, Usage: "search this `TIME` before now for the best period"},
			&urfave.StringFlag{Name: "fail-on", Value: "5%", Usage: "steps that are `SHARE` longer are a regression"},
			&urfave.IntFlag{Name: "top", Value: 15, Usage: "show the `N` rows that changed most"},
			&urfave.BoolFlag{Name: "json", Usage: "write JSON"},
		},
		OnUsageError: func(_ *urfave.Context, err error, _ bool) error { return cli.Mistaken(err) },
		Action:       runCompare,
	}
}

func runCompare(c *urfave.Context) error {
	arguments, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return cli.Mistaken(err)
	case len(arguments) != 1:
		return cli.Mistaken(errors.New("which store? ebpfprof fleet compare STORE"))
	case c.Duration("since") <= 0 || c.Duration("look") <= 0 || c.Duration("ago") < 0:
		return cli.Mistaken(errors.New("--since, --look and --ago: give positive times, such as 10m or 168h"))
	case c.IsSet("ago") && c.IsSet("look"):
		return cli.Mistaken(errors.New("--look is for the best time: leave it out with --ago"))
	case c.IsSet("ago") && c.Duration("ago") < c.Duration("since"):
		return cli.Mistaken(errors.New("--ago is less than --since: the two times would overlap"))
	}
	failOn, err := diff.Percent(c.String("fail-on"))
	if err != nil {
		return cli.Usagef("--fail-on: %w", err)
	}
	q := history.Question{Job: c.String("job"), Since: c.Duration("since"), Ago: c.Duration("ago"), Look: c.Duration("look"),
		FailOnPercent: failOn}
	db, closing, err := openStore(c, arguments[0], q.Since+max(q.Ago, q.Look))
	if err != nil {
		return err
	}
	defer closing()
	r, err := history.Compare(c.Context, db, q)
	if err != nil {
		return cli.Failed(fmt.Errorf("%s: %w", arguments[0], err))
	}
	if c.Bool("json") {
		err = answer.JSON(c, r)
	} else {
		err = r.WriteText(c.App.Writer, c.Int("top"))
	}
	if err != nil {
		return cli.Failed(err)
	}
	if code := r.ExitCode(); code != 0 {
		return urfave.Exit(fmt.Errorf("%s", r.Verdict), code)
	}
	return nil
}
