// Package memory is `ebpfprof memory` and what is below it.
package memory

import (
	"errors"
	"fmt"
	"io"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/analysis"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/source"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/text"
	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
)

const description = `Where memory ran out, that first: when, who asked for how much, and what was held. Live bytes over time, their peak and who holds it: by line of your code, module, operator and phase (a guess, from who
made a block and who freed it); allocator calls a step; what a caching allocator holds beyond that, and which blocks pin
it; lines whose bytes grow from step to step. Live bytes count what was allocated while recording. Record with
--budget off: of slices only parts are seen. A memory snapshot of PyTorch (pickle or JSON) can stand for a dataset.

   ebpfprof memory DATASET
   ebpfprof memory DATASET --format html --output memory.html
   ebpfprof memory plan DATASET
   ebpfprof memory solve blocks.csv`

var formats = []string{"text", "json", "html", "svg", "png", "parquet"}

// Command is `ebpfprof memory` and what is below it.
func Command() *urfave.Command {
	return &urfave.Command{
		Name:        "memory",
		Usage:       "report who holds memory, and plan it",
		ArgsUsage:   "DATASET | SNAPSHOT",
		Description: description,
		Subcommands: []*urfave.Command{planCommand(), solveCommand(), exportCommand()},
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
		return cli.Mistaken(err)
	case len(arguments) != 1:
		return cli.Mistaken(errors.New("which dataset? ebpfprof memory DATASET"))
	case c.Int("top") <= 0:
		return cli.Usagef("--top %d: give a positive number", c.Int("top"))
	}
	format, err := answer.Format(c, formats)
	if err != nil {
		return err
	}
	m, err := analysis.Load(c.Context, arguments[0], int32(c.Int("pid")))
	if err != nil {
		return cli.Failed(fmt.Errorf("%s: %w", arguments[0], err))
	}
	defer m.Close()
	if len(m.Arenas) == 0 && format != "text" && format != "json" {
		return cli.Failed(fmt.Errorf("%s: %w", arguments[0], source.ErrNoEvents))
	}
	err = answer.To(c, func(w io.Writer) error {
		switch format {
		case "json":
			return answer.Indented(w, m)
		case "parquet":
			return m.WriteParquet(w)
		case "html":
			return m.WriteHTML(w)
		case "svg":
			return m.Arenas[0].Picture().WriteSVG(w)
		case "png":
			return m.Arenas[0].Picture().WritePNG(w)
		}
		return answer.Text(w, func(w io.Writer) { text.Memory(w, m, c.Int("top")) })
	})
	if err != nil {
		return cli.Failed(err)
	}
	return nil
}
