package fleet

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/fleet/report"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

const verdictDescription = `Records in the store that a finding of fleet report was wrong, or right: later reports show it beside findings of the
same function. No finding is hidden.

   ebpfprof fleet verdict /shared/patterns --job llama --wrong --text 'that loader sleeps on purpose'
   ebpfprof fleet verdict /shared/patterns --job llama --right --finding 2`

func verdictCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "verdict",
		Usage:       "record that a finding of a report was wrong, or right",
		ArgsUsage:   "STORE",
		Description: verdictDescription,
		Flags: []urfave.Flag{
			&urfave.BoolFlag{Name: "wrong", Usage: "the finding was wrong"},
			&urfave.BoolFlag{Name: "right", Usage: "the finding was right"},
			&urfave.IntFlag{Name: "finding", Value: 1, Usage: "the `N`th of the report"},
			&urfave.StringFlag{Name: "text", Usage: "`WHY`"},
			&urfave.StringFlag{Name: "job", Usage: "the job's `NAME`", DefaultText: "the one seen last"},
			&urfave.DurationFlag{Name: "since", Usage: "as given to the report", DefaultText: "1m"},
		},
		OnUsageError: func(_ *urfave.Context, err error, _ bool) error { return cli.Mistaken(err) },
		Action:       runVerdict,
	}
}

func runVerdict(c *urfave.Context) error {
	arguments, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return cli.Mistaken(err)
	case len(arguments) != 1:
		return cli.Mistaken(errors.New("which store? ebpfprof fleet verdict STORE --wrong"))
	case c.Bool("wrong") == c.Bool("right"):
		return cli.Mistaken(errors.New("was the finding right? give one of --right and --wrong"))
	}
	s, err := store.Open(c.Context, arguments[0])
	if err != nil {
		return cli.Failed(err)
	}
	db, closing, err := openStore(c, arguments[0], c.Duration("since"))
	if err != nil {
		return err
	}
	defer closing()
	r, err := report.Build(c.Context, db, report.Question{Job: c.String("job"), Since: c.Duration("since")})
	if err != nil {
		return cli.Failed(fmt.Errorf("%s: %w", arguments[0], err))
	}
	n := c.Int("finding")
	if n < 1 || n > len(r.Findings) {
		return cli.Usagef("--finding %d: the report has %d", n, len(r.Findings))
	}
	author := "unknown"
	if who, err := user.Current(); err == nil {
		author = who.Username
	}
	// Under sudo the author is the user behind it.
	if sudo := os.Getenv("SUDO_USER"); sudo != "" {
		author = sudo
	}
	host, err := os.Hostname()
	if err != nil {
		return cli.Failed(err)
	}
	f := &r.Findings[n-1]
	if err := store.PutFeedback(c.Context, s, host, r.Feedback(f, author, c.Bool("wrong"), c.String("text"), time.Now())); err != nil {
		return cli.Failed(fmt.Errorf("writing the verdict: %w", err))
	}
	word := "right"
	if c.Bool("wrong") {
		word = "wrong"
	}
	fmt.Fprintf(c.App.Writer, "recorded as %s, for job %s: %s\n", word, printable.Text(r.Job), printable.Text(f.Sentence))
	return nil
}
