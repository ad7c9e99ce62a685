package fleet

import (
	"errors"
	"fmt"
	"io"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/fleet/report"
	"github.com/ebpfprof/ebpfprof/internal/fleet/spark"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

const reportDescription = `Reports which worker of a job is slow, in which function and why, and how much time equal workers would save.
Workers are compared by their patterns: with eight or more, each against a sample of its peers; with fewer, against the
median of the others. A common finding is a function on which most workers spend more than expected; a special one
distinguishes a worker from its peers; symptoms, such as waiting for another worker, come last.

   ebpfprof fleet report /shared/patterns
   ebpfprof fleet report /shared/patterns --job llama --since 2h --format html -o slow.html
   ebpfprof fleet report s3://profiles/fleet?endpoint=https://storage.example.com
   ebpfprof fleet report /shared/patterns --engine spark --master spark://head:7077
   ebpfprof fleet report /shared/patterns --json | jq '.findings[0]'`

func reportCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "report",
		Usage:       "report which worker is slow, in which function, and how much a fix would save",
		ArgsUsage:   "STORE",
		Description: reportDescription,
		Flags: []urfave.Flag{
			&urfave.StringFlag{Name: "job", Usage: "the job's `NAME`", DefaultText: "the one seen last"},
			&urfave.DurationFlag{Name: "since", Usage: "how much `TIME` before the newest pattern", DefaultText: "1m"},
			&urfave.StringFlag{Name: "engine", Value: "duckdb", Usage: "the engine that reads the store: duckdb, or spark (Apache Spark's " +
				"spark-submit in PATH)"},
			&urfave.StringFlag{Name: "master", Value: spark.Local, Usage: "Spark's master `URL`"},
			&urfave.StringFlag{Name: "format", Value: "text", Usage: "text, json or html"},
			&urfave.BoolFlag{Name: "json", Usage: "the same as --format json"},
			&urfave.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`", DefaultText: "the terminal"},
		},
		OnUsageError: func(_ *urfave.Context, err error, _ bool) error { return cli.Mistaken(err) },
		Action:       runReport,
	}
}

func runReport(c *urfave.Context) error {
	arguments, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return cli.Mistaken(err)
	case len(arguments) != 1:
		return cli.Mistaken(errors.New("which store? ebpfprof fleet report STORE"))
	}
	format := c.String("format")
	if c.Bool("json") {
		format = "json"
	}
	if !strings.Contains(" text json html ", " "+format+" ") {
		return cli.Usagef("--format %q: choose text, json or html", format)
	}
	db, closing, err := openEngine(c, arguments[0])
	if err != nil {
		return err
	}
	defer closing()
	r, err := report.Build(c.Context, db, report.Question{Job: c.String("job"), Since: c.Duration("since")})
	if errors.Is(err, report.ErrNoJob) {
		jobs, _ := report.Jobs(c.Context, db)
		if len(jobs) > 0 {
			err = fmt.Errorf("%w; it has %s", err, printable.Text(strings.Join(jobs, ", ")))
		}
	}
	if err != nil {
		return cli.Failed(fmt.Errorf("%s: %w", arguments[0], err))
	}
	return answer.To(c, func(w io.Writer) error {
		switch format {
		case "json":
			return answer.Indented(w, r)
		case "html":
			return r.WriteHTML(w)
		}
		return r.WriteText(w)
	})
}
