package main

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/memplan/analysis"
	"github.com/ebpfprof/ebpfprof/internal/memplan/snapshot"
	"github.com/ebpfprof/ebpfprof/internal/memplan/source"
)

const memoryExportDescription = `Writes the memory of a dataset as a snapshot of PyTorch: drop it onto pytorch.org/memory_viz, or give it to _memory_viz.py.
Each process's memory on each device is a device there, host memory too. With --at peak it ends at the peak, so that its
segments are what makes it.

   ebpfprof memory export DATASET --output snapshot.pickle`

// memoryExportCommand is `ebpfprof memory export`.
func memoryExportCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "export",
		Usage:       "write a snapshot for PyTorch's memory viewer",
		ArgsUsage:   "DATASET",
		Description: memoryExportDescription,
		Flags: []urfave.Flag{
			&urfave.IntFlag{Name: "pid", Usage: "only the process `PID`"},
			memoryVizAt(),
			&urfave.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`"},
		},
		Action: func(c *urfave.Context) error {
			arguments, err := cli.Interspersed(c)
			switch {
			case err != nil:
				return usageError(err)
			case len(arguments) != 1:
				return usageError(errors.New("which dataset? ebpfprof memory export DATASET --output FILE"))
			case c.String("output") == "":
				return usageError(errors.New("where to? --output FILE"))
			}
			return exportMemoryViz(c, arguments[0])
		},
	}
}

// memoryVizAt is --at.
func memoryVizAt() urfave.Flag {
	return &urfave.StringFlag{Name: "at", Value: "end", Usage: "end a snapshot for PyTorch's memory viewer at the peak or at the end"}
}

// exportMemoryViz writes --output.
func exportMemoryViz(c *urfave.Context, dataset string) error {
	if at := c.String("at"); at != "end" && at != "peak" {
		return usageError(fmt.Errorf("--at %s: peak or end", at))
	}
	m, err := analysis.Load(c.Context, dataset, int32(c.Int("pid")))
	if err != nil {
		return failed(fmt.Errorf("%s: %w", dataset, err))
	}
	defer m.Close()
	err = writeOutput(c, func(w io.Writer) error {
		if strings.HasSuffix(c.String("output"), ".gz") {
			z := gzip.NewWriter(w)
			return errors.Join(m.Export(c.Context, z, c.String("at") == "peak"), z.Close())
		}
		return m.Export(c.Context, w, c.String("at") == "peak")
	})
	if err != nil {
		return failed(err)
	}
	return nil
}

// importSnapshot is `ebpfprof import` of a memory snapshot of PyTorch.
func importSnapshot(c *urfave.Context, file, dir string) error {
	s, err := snapshot.ReadFile(file)
	if err != nil {
		return failed(fmt.Errorf("importing %w", err))
	}
	rows, err := source.Import(s, file, dir, source.ImportOptions{ToolVersion: cli.Version,
		CommandLine: importLine(c.Bool("redact")), Redact: c.Bool("redact")})
	if err != nil {
		return failed(fmt.Errorf("importing %s: %w", file, err))
	}
	if !c.Bool("quiet") {
		fmt.Fprintf(c.App.ErrWriter, "%d allocator events\n\ndataset: %s\nnext:\n  ebpfprof memory %s\n", rows, dir, dir)
	}
	return nil
}
