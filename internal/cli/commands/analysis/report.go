// Package analysis is the commands that say where a recorded job's time went, and what
// would make it shorter: a file a command.
package analysis

import (
	"database/sql"
	"fmt"
	"io"
	"os"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/answer/report"
	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/peaks"
	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
)

const reportDescription = `The first paragraph is the verdict: what takes the time, at which line, and what to do. Then follow the job, its steps
and where their time goes, device activity, operators, kernels, lines of your code, threads and memory. What was lost,
estimated or left out stands before the tables that it affects.
Without a path it reads the newest dataset in this directory.

   ebpfprof report DATASET
   ebpfprof report DATASET --format html -o report.html
   ebpfprof report DATASET --format json | jq .device`

// ReportCommand is `ebpfprof report`.
func ReportCommand() *urfave.Command {
	cli.CompleteValues("report format", report.Formats)
	return &urfave.Command{
		Name:        "report",
		Usage:       "report what limits the recorded job",
		ArgsUsage:   "[DATASET]",
		Description: reportDescription,
		Flags: append([]urfave.Flag{
			&urfave.StringFlag{Name: "format", Value: "text", Usage: strings.Join(report.Formats(), ", ")},
			&urfave.BoolFlag{Name: "json", Usage: "the same as --format json"},
			&urfave.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE` (default: standard output)"},
			&urfave.IntFlag{Name: "top", Value: 15, Usage: "show the `N` largest of each table; 0 is all (JSON: always all)"},
			&urfave.StringFlag{Name: "peaks", Usage: "take the peaks of devices from `FILE` first: JSON as ebpfprof peaks --devices " +
				"--json writes it"},
		}, answer.PartFlags()...),
		Action: runReport,
	}
}

func runReport(c *urfave.Context) error {
	path, err := answer.PathOrNewest(c)
	if err != nil {
		return err
	}
	format, err := answer.Format(c, report.Formats())
	if err != nil {
		return err
	}
	if c.Int("top") < 0 {
		return cli.Usagef("--top %d: give a positive number, or 0 for all", c.Int("top"))
	}
	if err := answer.CheckPart(c); err != nil {
		return err
	}
	db, err := answer.Open(c, path)
	if err != nil {
		return err
	}
	defer db.Close()
	line := answer.NewProgress(c)
	options := report.Options{Progress: func(what string) { line.Say("computing %s", what) }}
	if c.IsSet("rank") {
		options.Rank = new(c.Int("rank"))
	}
	if c.IsSet("step") {
		options.Step = new(c.Int("step"))
	}
	if file := c.String("peaks"); file != "" {
		if options.Peaks, err = peaks.ReadFile(file); err != nil {
			return cli.Mistaken(err)
		}
	}
	if m, ok := peaks.Saved(processorOf(c, db)); ok {
		options.Machine = &m
	}
	if c.IsSet("from") {
		options.FromMS = new(c.Float64("from"))
	}
	if c.IsSet("to") {
		options.ToMS = new(c.Float64("to"))
	}
	r, err := report.Build(c.Context, db, options)
	line.End()
	if err != nil {
		return cli.Failed(fmt.Errorf("%s: %w", path, err))
	}
	style := report.Style{Top: c.Int("top")}
	if f, ok := c.App.Writer.(*os.File); ok && !c.IsSet("output") {
		style.Width, style.Color = terminal.TextStyle(f)
	}
	err = answer.To(c, func(w io.Writer) error { return r.Write(w, format, style) })
	if err != nil {
		return cli.Failed(fmt.Errorf("writing the report: %w", err))
	}
	return nil
}

// processorOf is that of the recording, "" where it does not say.
func processorOf(c *urfave.Context, db *dataset.DB) string {
	var name sql.NullString
	_ = db.Row(c.Context, "SELECT any_value(cpu_model) FROM session", nil, &name)
	return name.String
}
