package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/printable"
	"github.com/ebpfprof/ebpfprof/internal/whatif"
)

// fleetCommand is `ebpfprof fleet`: questions about jobs of many workers.
func fleetCommand() *urfave.Command {
	return &urfave.Command{
		Name:            "fleet",
		Usage:           "questions about jobs of many workers",
		HideHelpCommand: true,
		Subcommands:     []*urfave.Command{uploadCommand(), fleetReportCommand(), fleetCompareCommand(), verdictCommand(), captureCommand(), hangCommand(), whatIfCommand()},
		OnUsageError:    func(_ *urfave.Context, err error, _ bool) error { return usageError(err) },
		Action: func(c *urfave.Context) error {
			if c.Args().Present() {
				return usageError(fmt.Errorf("fleet has no command %q: ebpfprof fleet --help lists them", c.Args().First()))
			}
			return urfave.ShowSubcommandHelp(c)
		},
	}
}

const whatIfDescription = `Replays the operations of a training job with some of them at the average of their type, and says how
much faster the job would be: with all workers alike (S), with the slowest 3 % of them like the others (M_W, the share of the loss that
they explain), with the last stage like the others (M_S), with one worker, stage or type alone as it was measured.

The trace is a Parquet file with a row per operation (columns dp_rank, stage, rank, step, optype, start_ts, duration,
seq_id, mc, mb_id, gmc; seconds), the description a YAML file (dp_size, pp_size, …): the format of
github.com/ByteDance-Seed/StragglerAnalysis. A worker is a stage of a dp_rank; its rank is the one in the file, the
first rank of its tensor group.

   ebpfprof fleet what-if --trace trace.parquet --meta meta.yaml
   ebpfprof fleet what-if --trace trace.parquet --meta meta.yaml --json | jq '.workers[0]'`

func whatIfCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "what-if",
		Usage:       "say what slow workers, stages and operations cost a job",
		Description: whatIfDescription,
		Flags: []urfave.Flag{
			&urfave.StringFlag{Name: "trace", Usage: "the operations, a Parquet `FILE`"},
			&urfave.StringFlag{Name: "meta", Usage: "the job's description, a YAML `FILE`"},
			&urfave.BoolFlag{Name: "json", Usage: "write JSON"},
		},
		OnUsageError: func(_ *urfave.Context, err error, _ bool) error { return usageError(err) },
		Action:       runWhatIf,
	}
}

func runWhatIf(c *urfave.Context) error {
	switch {
	case c.Args().Present():
		return usageError(fmt.Errorf("what is %q? give the files as --trace FILE --meta FILE", c.Args().First()))
	case c.String("trace") == "" || c.String("meta") == "":
		return usageError(errors.New("which job? ebpfprof fleet what-if --trace FILE.parquet --meta FILE.yaml"))
	}
	meta, err := whatif.ReadMeta(c.String("meta"))
	if err != nil {
		return urfave.Exit(err, cli.ExitFailed)
	}
	trace, err := whatif.ReadTrace(c.String("trace"))
	if err != nil {
		return urfave.Exit(err, cli.ExitFailed)
	}
	analysis, err := whatif.Analyse(trace, meta)
	if err != nil {
		return urfave.Exit(fmt.Errorf("replaying %s: %w", c.String("trace"), err), cli.ExitFailed)
	}
	printWarnings(c, analysis.Warnings)
	if c.Bool("json") {
		err = writeJSON(c, analysis)
	} else {
		err = analysis.WriteText(c.App.Writer)
	}
	if err != nil {
		return urfave.Exit(fmt.Errorf("writing the answer: %w", err), cli.ExitFailed)
	}
	return nil
}

// writeJSON writes one indented value.
func writeJSON(c *urfave.Context, value any) error { return encodeJSON(c.App.Writer, value) }

func encodeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(printable.JSON(w))
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
