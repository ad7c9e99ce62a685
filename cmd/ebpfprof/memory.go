package main

import (
	"errors"
	"fmt"
	"io"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/memplan/analysis"
	"github.com/ebpfprof/ebpfprof/internal/memplan/text"
)

const memoryDescription = `Live bytes over time, their peak and who holds it: by line of your code, module, operator and phase (a guess, from who
made a block and who freed it); allocator calls a step; what a caching allocator holds beyond that, and which blocks pin
it; lines whose bytes grow from step to step. Live bytes count what was allocated while recording. Record with
--budget off: of slices only parts are seen. A memory snapshot of PyTorch (pickle or JSON) can stand for a dataset.

   ebpfprof memory DATASET
   ebpfprof memory DATASET --format html --output memory.html
   ebpfprof memory plan DATASET
   ebpfprof memory solve blocks.csv`

var memoryFormats = []string{"text", "json", "html", "svg", "png", "parquet"}

// memoryCommand is `ebpfprof memory` and what is below it.
func memoryCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "memory",
		Usage:       "say who holds memory, and plan it",
		ArgsUsage:   "DATASET | SNAPSHOT",
		Description: memoryDescription,
		Subcommands: []*urfave.Command{planCommand(), solveCommand(), memoryExportCommand()},
		Flags: []urfave.Flag{
			&urfave.IntFlag{Name: "pid", Usage: "only the process `PID`"},
			&urfave.IntFlag{Name: "top", Value: 10, Usage: "show `N` holders of each kind"},
			&urfave.StringFlag{Name: "format", Value: "text", Usage: "text, json, html, svg, png or parquet (its blocks)"},
			&urfave.StringFlag{Name: "output", Usage: "write to `FILE` instead of standard output"},
			&urfave.BoolFlag{Name: "json", Usage: "the same as --format json"},
		},
		Action: runMemory,
	}
}

func runMemory(c *urfave.Context) error {
	arguments, err := cli.Interspersed(c)
	switch {
	case err != nil:
		return usageError(err)
	case len(arguments) != 1:
		return usageError(errors.New("which dataset? ebpfprof memory DATASET"))
	case c.Int("top") <= 0:
		return usageError(fmt.Errorf("--top %d: give a positive number", c.Int("top")))
	}
	format, err := formatOf(c, memoryFormats)
	if err != nil {
		return err
	}
	m, err := analysis.Load(c.Context, arguments[0], int32(c.Int("pid")))
	if err != nil {
		return failed(fmt.Errorf("%s: %w", arguments[0], err))
	}
	defer m.Close()
	err = writeOutput(c, func(w io.Writer) error {
		switch format {
		case "json":
			return writeIndented(w, m)
		case "parquet":
			return m.WriteParquet(w)
		case "html":
			return m.WriteHTML(w)
		case "svg":
			return m.Arenas[0].Picture().WriteSVG(w)
		case "png":
			return m.Arenas[0].Picture().WritePNG(w)
		}
		return writeText(w, func(w io.Writer) { text.Memory(w, m, c.Int("top")) })
	})
	if err != nil {
		return failed(err)
	}
	return nil
}
