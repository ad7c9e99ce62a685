package memory

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/analysis"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/source"
	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
)

const exportDescription = `Writes the memory of a dataset as a snapshot of PyTorch: drop it onto pytorch.org/memory_viz, or give it to _memory_viz.py.
Each process's memory on each device is a device there, host memory too. With --at peak it ends at the peak, so that its
segments are what makes it.

   ebpfprof memory export DATASET --output snapshot.pickle`

// exportCommand is `ebpfprof memory export`.
func exportCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "export",
		Usage:       "write a snapshot for PyTorch's memory viewer",
		ArgsUsage:   "DATASET",
		Description: exportDescription,
		Flags: []urfave.Flag{
			&urfave.IntFlag{Name: "pid", Usage: "only the process `PID`"},
			VizAt(),
			&urfave.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`"},
		},
		Action: func(c *urfave.Context) error {
			arguments, err := cli.Interspersed(c)
			switch {
			case err != nil:
				return cli.Mistaken(err)
			case len(arguments) != 1:
				return cli.Mistaken(errors.New("which dataset? ebpfprof memory export DATASET --output FILE"))
			case c.String("output") == "":
				return cli.Mistaken(errors.New("where to? --output FILE"))
			}
			return ExportViz(c, arguments[0])
		},
	}
}

// VizAt is --at.
func VizAt() urfave.Flag {
	return &urfave.StringFlag{Name: "at", Value: "end", Usage: "end a snapshot for PyTorch's memory viewer at the peak or at the end"}
}

// ExportViz writes --output.
func ExportViz(c *urfave.Context, dataset string) error {
	if at := c.String("at"); at != "end" && at != "peak" {
		return cli.Usagef("--at %s: peak or end", at)
	}
	m, err := analysis.Load(c.Context, dataset, int32(c.Int("pid")))
	if err != nil {
		return cli.Failed(fmt.Errorf("%s: %w", dataset, err))
	}
	defer m.Close()
	if len(m.Arenas) == 0 {
		return cli.Failed(fmt.Errorf("%s: %w", dataset, source.ErrNoEvents))
	}
	err = answer.To(c, func(w io.Writer) error {
		if strings.HasSuffix(c.String("output"), ".gz") {
			z := gzip.NewWriter(w)
			return errors.Join(m.Export(c.Context, z, c.String("at") == "peak"), z.Close())
		}
		return m.Export(c.Context, w, c.String("at") == "peak")
	})
	if err != nil {
		return cli.Failed(err)
	}
	return nil
}
