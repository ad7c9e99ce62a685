package benchmark

import (
	"fmt"
	"io"
	"os"

	"github.com/jedib0t/go-pretty/v6/table"
	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/numbers"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/results"
	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
)

// mostPrinted is how much of a job's output is read.
const mostPrinted = 16 << 20

// numbersCommand is what other harnesses call: they run the job themselves.
func numbersCommand() *urfave.Command {
	return &urfave.Command{
		Name: "numbers", Usage: "read a benchmark's numbers from a recording that was made before", ArgsUsage: "DATASET",
		Description: "For harnesses that run and record jobs themselves: the Python package's plugin for ReFrame calls it.",
		Flags: append(measureFlags(),
			&urfave.StringFlag{Name: "printed", Usage: "find the loss in `FILE`, which has what the job printed"},
			&urfave.BoolFlag{Name: "json", Usage: "as JSON: a list of {name, unit, value, lo, hi, of, from, why}"}),
		Action: func(c *urfave.Context) error {
			return answer.Ask(c, func(db *dataset.DB) error {
				o := options(c)
				if name := c.String("printed"); name != "" {
					text, err := printed(name)
					if err != nil {
						return err
					}
					o.Output = text
				}
				all, _, err := numbers.Measure(c.Context, db, o)
				if err != nil {
					return err
				}
				if c.Bool("json") {
					return answer.JSON(c, all)
				}
				return answer.Text(c.App.Writer, func(w io.Writer) { writeNumbers(w, all) })
			})
		},
	}
}

// printed is what a file has of a job's output.
func printed(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", cli.Mistaken(fmt.Errorf("--printed: %w", err))
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostPrinted))
	return string(text), err
}

func writeNumbers(w io.Writer, all []numbers.Number) {
	t := terminal.PlainTable("number", "value", "unit", "")
	for _, n := range all {
		value, note := "-", n.Why
		if n.Value != nil {
			value = results.Figure(*n.Value)
		}
		t.AppendRow(table.Row{n.Name, value, n.Unit, note})
	}
	terminal.RightAlign(t, 2, 2)
	terminal.Render(w, t)
}

// measureFlags are what a recording cannot tell by itself.
func measureFlags() []urfave.Flag {
	return []urfave.Flag{
		&urfave.IntFlag{Name: "batch", Usage: "samples in a step of one process, `N`", DefaultText: "what the data loader puts together"},
		&urfave.IntFlag{Name: "steps-per-epoch", Usage: "steps in an epoch, `N`", DefaultText: "by the ends of the data loader"},
		&urfave.StringFlag{Name: "loss", Usage: "find the loss in the job's output by `REGEX`, whose last group is the number",
			DefaultText: "loss: NUMBER"},
	}
}
