package data

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"syscall"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/exchange/joiner"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/internal/version"
)

const joinDescription = `Writes one dataset of several hosts' recordings of one run of a job, which every command reads like a recording.

Processes that have one number on two hosts get numbers of their own (2^22 more, or a multiple of it). The hosts'
clocks are compared by the collectives that their ranks met in: no rank leaves an all-reduce before every rank has
entered it. All times go onto the clock of the host with the lowest rank; how wrong that can be is printed, and stands
in table clock. Recordings that are not of one run are refused: a rank in two of them, two sizes of the job, nothing in
common. What analyses saved (steps --save and the like) is left out.

   ebpfprof join node0.dataset node1.dataset --output job.dataset && ebpfprof report job.dataset`

// JoinCommand is `ebpfprof join`.
func JoinCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "join",
		Usage:       "make one dataset of several hosts' recordings of a job",
		ArgsUsage:   "DATASET…",
		Description: joinDescription,
		Flags: []urfave.Flag{
			&urfave.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the dataset into `DIRECTORY`"},
			&urfave.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print only errors"},
		},
		Action: runJoin,
	}
}

func runJoin(c *urfave.Context) error {
	datasets, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return cli.Mistaken(err)
	case len(datasets) < 2:
		return cli.Mistaken(errors.New("which datasets? ebpfprof join DATASET DATASET… --output DATASET"))
	case c.String("output") == "":
		return cli.Mistaken(errors.New("where to? ebpfprof join DATASET… --output DATASET"))
	}
	// A join that is stopped takes back what it has written.
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	line := answer.NewProgress(c)
	summary, err := joiner.Join(ctx, datasets, c.String("output"), joiner.Options{ToolVersion: version.Version,
		Progress: func(done, of int) { line.Say("joining: file %d of %d", done+1, of) }})
	line.End()
	if ctx.Err() != nil {
		return cli.Failed(errors.New("stopped: nothing was joined"))
	}
	if err != nil {
		return cli.Failed(err)
	}
	if c.Bool("quiet") {
		return nil
	}
	answer.Warn(c, summary.Warnings)
	fmt.Fprintf(c.App.Writer, "%d recordings, %d ranks, %d rows: %s\n", len(summary.Clocks), summary.Ranks, summary.Rows, c.String("output"))
	for _, clock := range summary.Clocks {
		fmt.Fprintln(c.App.Writer, printable.Text(clockText(clock))) // names of hosts are whatever a recording says
	}
	return nil
}

// clockText is a sentence about the clock of a recording.
func clockText(c joiner.Clock) string {
	name := c.Host
	if name == "" {
		name = c.Session
	}
	ahead := fmt.Sprintf("%s: clock was %.3f ms ahead of", name, float64(c.Ahead)/1e6)
	if c.Ahead < 0 {
		ahead = fmt.Sprintf("%s: clock was %.3f ms behind", name, -float64(c.Ahead)/1e6)
	}
	ahead += " session " + c.Reference
	if c.Drift != 0 {
		ahead += fmt.Sprintf(" and drifted by %.1f µs a second", math.Abs(c.Drift)*1e6)
	}
	switch c.Method {
	case joiner.Reference:
		return fmt.Sprintf("%s: session %s, on whose clock all times are", name, c.Session)
	case joiner.Kernel:
		return ahead + ", by the clock of the kernel that both have"
	case joiner.Met:
		return fmt.Sprintf("%s ± %.3f ms, by %d collectives", ahead, float64(c.Error)/1e6, c.Collectives)
	}
	return name + ": clock not compared, its times are as they were recorded"
}
