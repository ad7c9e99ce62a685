package fleet

import (
	"errors"
	"fmt"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/answer/whatif"
	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
)

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
		Usage:       "estimate what slow workers, stages and operations cost a job",
		Description: whatIfDescription,
		Flags: []urfave.Flag{
			&urfave.StringFlag{Name: "trace", Usage: "the operations, a Parquet `FILE`"},
			&urfave.StringFlag{Name: "meta", Usage: "the job's description, a YAML `FILE`"},
			&urfave.BoolFlag{Name: "json", Usage: "write JSON"},
		},
		OnUsageError: func(_ *urfave.Context, err error, _ bool) error { return cli.Mistaken(err) },
		Action:       runWhatIf,
	}
}

func runWhatIf(c *urfave.Context) error {
	switch {
	case c.Args().Present():
		return cli.Usagef("what is %q? give the files as --trace FILE --meta FILE", c.Args().First())
	case c.String("trace") == "" || c.String("meta") == "":
		return cli.Mistaken(errors.New("which job? ebpfprof fleet what-if --trace FILE.parquet --meta FILE.yaml"))
	}
	meta, err := whatif.ReadMeta(c.String("meta"))
	if err != nil {
		return cli.Failed(err)
	}
	trace, err := whatif.ReadTrace(c.String("trace"))
	if err != nil {
		return cli.Failed(err)
	}
	analysis, err := whatif.Analyse(trace, meta)
	if err != nil {
		return cli.Failed(fmt.Errorf("replaying %s: %w", c.String("trace"), err))
	}
	answer.Warn(c, analysis.Warnings)
	if c.Bool("json") {
		err = answer.JSON(c, analysis)
	} else {
		err = analysis.WriteText(c.App.Writer)
	}
	if err != nil {
		return cli.Failed(fmt.Errorf("writing the answer: %w", err))
	}
	return nil
}
