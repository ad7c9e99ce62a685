package analysis

import (
	"fmt"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/peaks"
)

const peaksDescription = `Measures how many single-precision operations and how many bytes of memory a second this machine can do, in about two
seconds; run it on an idle machine. The result is stored, and reports of recordings on this processor compare with it.
--devices lists the accelerators with known peak figures.

   ebpfprof peaks
   ebpfprof peaks --devices`

// PeaksCommand is `ebpfprof peaks`.
func PeaksCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "peaks",
		Usage:       "measure the peak performance of this machine",
		Description: peaksDescription,
		Flags: []urfave.Flag{
			&urfave.IntFlag{Name: "threads", Usage: "measure with `N` threads", DefaultText: "as many as processors"},
			&urfave.BoolFlag{Name: "devices", Usage: "list the known devices instead"},
			&urfave.BoolFlag{Name: "json", Usage: "write JSON"},
		},
		Action: runPeaks,
	}
}

func runPeaks(c *urfave.Context) error {
	switch {
	case c.Args().Present():
		return cli.Usagef("peaks takes no argument: %q", c.Args().First())
	case c.Int("threads") < 0:
		return cli.Usagef("--threads %d: give a positive number", c.Int("threads"))
	case c.Bool("devices"):
		return listDevices(c)
	}
	line := answer.NewProgress(c)
	line.Say("measuring")
	m, err := peaks.Measure(c.Context, peaks.Processor(), c.Int("threads"))
	line.End()
	if err != nil {
		return cli.Failed(err)
	}
	if err := m.Save(); err != nil {
		answer.Warn(c, []string{err.Error() + ": reports will not use it"})
	}
	if c.Bool("json") {
		return answer.JSON(c, m)
	}
	fmt.Fprintf(c.App.Writer, "%s: %.1f GFLOP/s of fp32 with %s on %d threads (%.1f on one), %.1f GB/s of memory (read and written "+
		"together).\n",
		m.Processor, m.FLOPs/1e9, m.With, m.Threads, m.FLOPsOne/1e9, m.Bytes/1e9)
	fmt.Fprintf(c.App.Writer, "Work of less than %.1f operations a byte is bound by memory here.\n", m.Ridge())
	return nil
}

func listDevices(c *urfave.Context) error {
	all := peaks.Devices()
	if c.Bool("json") {
		return answer.JSON(c, all)
	}
	fmt.Fprintf(c.App.Writer, "%-24s %10s %10s %10s  %s\n", "device", "bf16 TF/s", "fp32 TF/s", "GB/s", "from")
	for _, p := range all {
		fmt.Fprintf(c.App.Writer, "%-24s %10.1f %10.1f %10.0f  %s\n", p.Device, p.FLOPs["bf16"]/1e12, p.FLOPs["fp32"]/1e12, p.Bytes/1e9, p.Note)
	}
	return nil
}
